// SPDX-License-Identifier: Apache-2.0
// Faults and numbers as sentences.
// See judgement.hpp.
// A reason names at most three faults; at_fault has all.
#include "verify/machine/judgement.hpp"

#include <algorithm>

namespace sealift::verify {

void Faults::add(const std::string& who, const Sentence& what) {
  all_.emplace_back(who, what);
}

void Faults::settle(Check& check, const Sentence& good) const {
  check.outcome = all_.empty() ? Outcome::Pass : Outcome::Fail;
  check.reason = all_.empty() ? good : Sentence();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto& [who, what] = all_[i];
    if (std::find(check.at_fault.begin(), check.at_fault.end(), who) == check.at_fault.end())
      check.at_fault.push_back(who);
    if (i < 3) {
      check.reason.en += (i ? "; " : "") + who + ": " + what.en;
      check.reason.zh += (i ? "；" : "") + who + "：" + what.zh;
    }
  }
  if (all_.size() > 3) {
    const auto more = std::to_string(all_.size() - 3);
    check.reason.en += "; and " + more + " more";
    check.reason.zh += "；另有 " + more + " 项";
  }
}

std::vector<const Measured*> with_values(const std::vector<Measured>& all) {
  std::vector<const Measured*> some;
  for (const auto& measured : all) {
    if (measured.values.is_object()) some.push_back(&measured);
  }
  return some;
}

}  // namespace sealift::verify
