// SPDX-License-Identifier: Apache-2.0
// What NCCL says of its choices: network, transports, channels, NVLS.
// `run` asks for the log before groups are made; the checks of collectives put what it says into the report.
// NCCL has no call that tells these; its log does, and lines of another form are passed over.
#pragma once

#include "verify/verdict/check.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace sealift::verify {

/// Names and values from the text of a log with NCCL_DEBUG=INFO, each name once.
std::vector<Fact> facts_of_nccl_log(const std::string& text);

/// Makes NCCL write such a log of this process to a file in `folder`, which is this process's alone, unless the
/// environment already says what it shall log.
void ask_for_nccl_log(const std::filesystem::path& folder);

/// The facts of this process's log; none without one. Reads at most 8 MiB of it.
std::vector<Fact> facts_of_own_nccl_log();

}  // namespace sealift::verify
