// SPDX-License-Identifier: Apache-2.0
// Does what was built work? Asked before anything is switched: its interpreter imports what the bundle names, its
// native files load, two processes of its torch can talk. The only place where the installer runs a program, and that
// program was verified. What could not be tried here is said to be "not run", with the reason; it never counts as
// passed.
#pragma once

#include <chrono>

#include "bundle/core/json.hpp"
#include "installer/layout/layout.hpp"

namespace sealift::installer {

struct SelfCheck {
  struct Step {
    std::string name;     // "native files"
    bool passed = false;  // else: not run
    std::string detail;   // what was tried, or why it was not

    bool operator==(const Step&) const = default;
  };

  std::vector<std::string> imports;
  std::uint64_t milliseconds = 0;  // of the imports
  std::vector<Step> steps;         // what was tried besides
};

struct SelfCheckOptions {
  enum class Depth {
    Imports,   // what the bundle names, no more
    Full,      // and native files, and a two-rank all-reduce
    Training,  // and two steps of the carried sealift-train
  };

  Depth depth = Depth::Full;
  std::string arch = "x86_64";                               // native files for others are not tried
  std::chrono::seconds patience = std::chrono::minutes(10);  // with each program
};

// `scratch` is a folder that serves as HOME and TMPDIR. Throws SelfTest with the end of what the program wrote to
// stderr. An environment that needs no interpreter (no imports, no libraries) is tested without one.
SelfCheck self_check(const bundle::Environment& environment, const Layout& layout,
                     const std::filesystem::path& generation, const std::filesystem::path& scratch,
                     const SelfCheckOptions& options = {});

bundle::Json to_json(const SelfCheck& test);
SelfCheck self_check_from(bundle::JsonObject object);

}  // namespace sealift::installer
