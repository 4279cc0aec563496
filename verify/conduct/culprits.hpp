// SPDX-License-Identifier: Apache-2.0
// Who is at fault, and how that is known: what every judge collects, and the check that it comes to.
// Filled by the judging halves of checks.
// All are named in `at_fault`, and the first few in the reason, which must be readable for a thousand ranks.
#pragma once

#include "verify/verdict/check.hpp"

namespace sealift::verify {

class Culprits {
 public:
  /// `who` ("gpu07", "rank 3 on gpu07 (cuda:3)", a file) is at fault. `said` follows the name and a colon; empty: the
  /// name says it all.
  void add(const Phrase& who, const Phrase& said);
  void add(const Culprits& others);

  bool empty() const { return all_.empty(); }
  std::size_t count() const { return all_.size(); }

  /// FAIL, with all of them named; of a check that has failed already, they are added to what it says. Nothing where
  /// nobody is at fault.
  void accuse(Check& check) const;

  /// `accuse`, or PASS with `good`.
  void settle(Check& check, const Phrase& good) const;

 private:
  struct Accusation {
    Phrase who, said;
  };
  std::vector<Accusation> all_;
};

}  // namespace sealift::verify
