// SPDX-License-Identifier: Apache-2.0
// PREFIX/failed: the last generation that did not pass its self-test, with the reason, for whoever has to find out why.
// One at most: the next failure replaces it, the next success removes it. It costs names, as all generations do.
#pragma once

#include "installer/generations/generation.hpp"

namespace sealift::installer {

struct FailedGeneration {
  unsigned number = 0;  // that it would have had
  std::string name;
  std::uint64_t version = 0;
  bundle::Digest identity;
  std::string failed;  // when, by this machine's clock
  std::string where;   // what was tried
  std::string got;     // and how it ended
};

// Moves what was built at `root` aside. Never throws: what went wrong before is what has to be told.
void keep_failed(const Prefix& prefix, const GenerationRecord& record, const std::filesystem::path& root,
                 const bundle::Error& reason, const std::filesystem::path& staging, Disk& disk);
// Nothing when there is none, or when it cannot be read.
std::optional<FailedGeneration> failed_generation(const Prefix& prefix);
void forget_failed(const Prefix& prefix, Disk& disk);

}  // namespace sealift::installer
