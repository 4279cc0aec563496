// SPDX-License-Identifier: Apache-2.0
// Whether a machine did other work while something was timed.
// Used by the checks that compare rates: what is slow beside other programs, or under a quota of its control group,
// tells nothing of the machine. Only what others took counts; ranks that share a machine are this run's own.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/conduct/culprits.hpp"

namespace sealift::verify {

/// Processor time of this machine and of this process since it was made.
class Processors {
 public:
  Processors();

  /// For the measurement's key "processors": {"machine", "cores", "seconds", "busy", "own", "wanted"}; `wanted`: cores
  /// that this rank could use. Where a quota of its control groups held it back, also {"held_back": {"seconds",
  /// "periods", "quota", "file"}}. Null where the kernel does not tell.
  nlohmann::json taken(double wanted) const;

 private:
  nlohmann::json began_;
};

/// The machines of which other programs, or the host of a virtual machine, took more than a tenth, so that this run's
/// ranks had less than they wanted: "other programs took 1.8 of 2 processors of host1".
std::optional<Phrase> other_work(const std::vector<Measured>& all);

/// The ranks that a quota of processor time held back for more than a twentieth of what was measured: accused of their
/// quota, with its file, and of nothing else.
Culprits held_back(const std::vector<Measured>& all);

/// A check that failed by rates alone names the quotas that held ranks back and nobody's silicon; else it is NOT RUN
/// beside other work, and says what looked slow. Adds the figure of what others took.
void excuse_beside_other_work(const std::vector<Measured>& all, Check& check);

/// Fails `check` with both; `slow` follows from rates: where quotas held ranks back these are accused in its place, and
/// beside other work nobody is. False if nobody is accused.
bool accuse_of_rates(const Culprits& certain, const Culprits& slow, const std::vector<Measured>& all, Check& check);

}  // namespace sealift::verify
