// SPDX-License-Identifier: Apache-2.0
// What becomes of each key of a job file, told one by one: taken, ignored or refused, and why.
// Beside the reading of a job, which stops at what is wrong; `explain` prints it.
// Each key is taken over by itself, so that one that is refused hides no other.
#pragma once

#include "trainer/settings/foreign_jobs.hpp"

namespace sealift::trainer {

struct Fate {
  enum class Kind { Taken, Ignored, Refused } kind = Kind::Taken;
  std::string key, value;
  std::string words;  ///< settings as "name = text", or why it is ignored or refused
};

/// Of each key of a job that fine-tunes, in their order.
std::vector<Fate> fates_of(const Texts& texts, Task task);

/// Of each key of a job of `sealift-train run`.
std::vector<Fate> fates_of_run(const Texts& texts);

}  // namespace sealift::trainer
