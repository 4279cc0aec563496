// SPDX-License-Identifier: Apache-2.0
// PREFIX/failed: the last generation that failed its self-check, with the reason, for the search for its cause. One at
// most: the next failure replaces it, the next success removes it. Like every generation it costs names, not bytes.
#pragma once

#include <optional>

#include "installer/disk/disk.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

struct FailedGeneration {
  unsigned number = 0;  // the number it would have had
  std::string name;
  std::uint64_t version = 0;
  bundle::Digest identity;
  std::string added_to;  // of an addition: "NAME version N"; else empty
  std::string failed;    // when, by this machine's clock
  std::string where;     // the step that failed
  std::string got;       // how it failed
};

// Moves what was built at `built` aside. Never throws, so that the first error is reported.
void keep_failed(const Prefix& prefix, const FailedGeneration& failure, const std::filesystem::path& built,
                 const std::filesystem::path& staging, Disk& disk);
// Nothing when there is none, or when it cannot be read.
std::optional<FailedGeneration> failed_generation(const Prefix& prefix);
bool forget_failed(const Prefix& prefix, Disk& disk);  // whether there was one

}  // namespace sealift::installer
