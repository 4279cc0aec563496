// SPDX-License-Identifier: Apache-2.0
// What a prefix holds: its generations, as their records describe them, and which one is current. Read only, without
// the prefix lock. A generation whose record cannot be read is listed with the reason.
#pragma once

#include <optional>

#include "installer/generations/failed_generation.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::installer {

struct Status {
  struct Generation {
    unsigned number = 0;
    std::optional<GenerationRecord> record;
    std::string fault;  // why there is no record
    bool pinned = false;
    bundle::Variables variables = {};               // that its programs get
    std::vector<std::filesystem::path> venvs = {};  // that are known to use it
  };

  std::filesystem::path prefix;
  std::optional<unsigned> current;
  std::vector<Generation> generations;
  std::optional<FailedGeneration> failed;  // the last one that failed its self-check
};

// Throws Missing where there is no prefix.
Status status_of(const Prefix& prefix);

}  // namespace sealift::installer
