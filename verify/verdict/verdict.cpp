// SPDX-License-Identifier: Apache-2.0
// The one sentence that a verdict comes to.
// See verdict.hpp.
// A fail outweighs all; a pass needs something that was run.
#include "verify/verdict/verdict.hpp"

#include <algorithm>

namespace sealift::verify {

Outcome outcome_of(const Verdict& verdict) {
  const auto any = [&](Outcome outcome) {
    return std::any_of(verdict.checks.begin(), verdict.checks.end(),
                       [&](const Check& check) { return check.outcome == outcome; });
  };
  if (any(Outcome::Fail)) return Outcome::Fail;
  return any(Outcome::Pass) ? Outcome::Pass : Outcome::NotRun;
}

}  // namespace sealift::verify
