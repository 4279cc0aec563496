// SPDX-License-Identifier: Apache-2.0
// Names culprits in a check.
// See culprits.hpp.
// Somebody who is accused twice is named once.
#include "verify/conduct/culprits.hpp"

#include <algorithm>

namespace sealift::verify {

void Culprits::add(const Phrase& who, const Phrase& said) {
  all_.push_back({who, said});
}

void Culprits::add(const Culprits& others) {
  all_.insert(all_.end(), others.all_.begin(), others.all_.end());
}

void Culprits::accuse(Check& check) const {
  constexpr std::size_t kSaid = 3;
  if (empty()) return;
  if (check.outcome != Outcome::Fail) check.reason = {};
  check.outcome = Outcome::Fail;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto& [who, said] = all_[i];
    if (std::find(check.at_fault.begin(), check.at_fault.end(), who) == check.at_fault.end()) {
      check.at_fault.push_back(who);
    }
    if (i >= kSaid) continue;
    append(check.reason, said.en.empty() ? who : Phrase{who.en + ": " + said.en, who.zh + "：" + said.zh});
  }
  if (all_.size() <= kSaid) return;
  const auto more = std::to_string(all_.size() - kSaid);
  append(check.reason, {"and " + more + " more", "另有 " + more + " 项"});
}

void Culprits::settle(Check& check, const Phrase& good) const {
  if (!empty()) return accuse(check);
  check.outcome = Outcome::Pass;
  check.reason = good;
}

}  // namespace sealift::verify
