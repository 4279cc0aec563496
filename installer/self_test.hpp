// SPDX-License-Identifier: Apache-2.0
// Does what was built work? Its own interpreter imports the modules that the bundle names, before anything is switched.
// The only place where the installer runs a program, and that program was verified.
#pragma once

#include <chrono>
#include <filesystem>

#include "sealift/bundle/json.hpp"
#include "sealift/bundle/manifest.hpp"

namespace sealift::installer {

struct SelfTest {
  std::vector<std::string> imports;
  std::uint64_t milliseconds = 0;
};

// `scratch` is a folder that serves as HOME and TMPDIR. Throws SelfTest with the end of what the interpreter wrote to
// stderr. Without imports nothing is run.
SelfTest self_test(const bundle::Environment& environment, const std::filesystem::path& generation,
                   const std::filesystem::path& scratch, std::chrono::seconds patience = std::chrono::minutes(10));

bundle::Json to_json(const SelfTest& test);
SelfTest self_test_from(bundle::JsonObject object);

}  // namespace sealift::installer
