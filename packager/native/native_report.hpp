// SPDX-License-Identifier: Apache-2.0
// A NativeReport for people and machines: one error with everything that is refused, warnings, and a summary.
// For a library that is missing it looks on this machine, and says what to write into the job file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "packager/native/native_check.hpp"

namespace sealift::packager {

// Throws Missing or Platform with every refusal and its remedy. `host` are the folders where this machine's linker
// looks.
void require_native(const NativeReport& report, const bundle::Target& target,
                    const std::vector<std::filesystem::path>& host);

// The newest glibc that anything needs.
bundle::GlibcVersion glibc_floor(const NativeReport& report);
std::string native_summary(const NativeReport& report);
bundle::Json native_json(const NativeReport& report);

}  // namespace sealift::packager
