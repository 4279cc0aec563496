// SPDX-License-Identifier: Apache-2.0
// A step of a build that runs foreign code: in the sandbox, with the target's Python, and what is said when it fails.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "packager/builds/build_order.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

// Where programs of the system are.
inline constexpr const char* kSystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// In the sandbox, or, where the packer said so, with the same variables and nothing else to hold it.
ProcessResult run_step(const BuildTools& tools, const SandboxedRun& run);

// Tells how long a step of this build lasts, and what it said last: "flash-attn 2.8.3, the build: 31 s: [3/72] nvcc …".
Watch watch_of(const BuildOrder& order, const BuildTools& tools, const std::string& step);

// `readable`, and the target's Python, where it is not the system's.
std::vector<std::filesystem::path> with_python(const BuildTools& tools, std::vector<std::filesystem::path> readable);

[[noreturn]] void refuse_build(const BuildOrder& order, bundle::ErrorCode code, std::string what, std::string got);

// The last `lines` of what a step printed, 4,000 bytes at most.
std::string last_lines(const std::string& text, std::size_t lines);

// The last lines of a build's log, and before them those further up by which a compiler says what is wrong: setuptools
// and ninja end with a traceback of their own, which says only that something was.
std::string end_of_log(const std::string& log);

}  // namespace sealift::packager
