// SPDX-License-Identifier: Apache-2.0
// Turns a NativeReport into one error with all refusals, a summary, and JSON. For a missing library it searches this
// machine and says what to write into the job file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "packager/native/native_check.hpp"

namespace sealift::packager {

// Throws Missing or Platform with every refusal and its remedy. `host` are the folders that this machine's linker
// searches.
void require_native(const NativeReport& report, const bundle::Target& target,
                    const std::vector<std::filesystem::path>& host);

// The newest glibc that anything needs.
bundle::GlibcVersion glibc_floor(const NativeReport& report);
std::string native_summary(const NativeReport& report);
bundle::Json native_json(const NativeReport& report);

}  // namespace sealift::packager
