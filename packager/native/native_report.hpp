// SPDX-License-Identifier: Apache-2.0
// A NativeReport for people and machines: one error with everything that is refused, warnings, and a summary.
// For a library that is missing it looks on this machine, and says what to write into the job file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/native/native_check.hpp"
#include "bundle/core/json.hpp"

namespace sealift::packager {

// Throws Missing or Platform with every refusal and its remedy. `host` are the folders where this machine's linker
// looks.
void require_native(const NativeReport& report, const bundle::Target& target,
                    const std::vector<std::filesystem::path>& host);

// Looks at everything in the bundle, says what is to be said, and throws as require_native does.
// What is left out of a wheel is not looked at.
NativeReport check_native(const Lock& lock, const Cache& cache, Console& console, const LeftOut& left_out = {});

// The newest glibc that anything needs.
bundle::GlibcVersion glibc_floor(const NativeReport& report);
std::string native_summary(const NativeReport& report);
bundle::Json native_json(const NativeReport& report);

}  // namespace sealift::packager
