// SPDX-License-Identifier: Apache-2.0
// What a prefix holds: its generations as their records tell, and which one is in use. Read only, no lock needed.
// A generation whose record cannot be read is listed with the reason instead of hiding the others.
#pragma once

#include "installer/generations/failed_generation.hpp"

namespace sealift::installer {

struct Status {
  struct Generation {
    unsigned number = 0;
    std::optional<GenerationRecord> record;
    std::string fault;  // why there is no record
    bool pinned = false;
  };

  std::filesystem::path prefix;
  std::optional<unsigned> current;
  std::vector<Generation> generations;
  std::optional<FailedGeneration> failed;  // the last one that did not pass its self-test
};

Status status_of(const Prefix& prefix);

}  // namespace sealift::installer
