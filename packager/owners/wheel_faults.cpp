// SPDX-License-Identifier: Apache-2.0
#include "packager/owners/wheel_faults.hpp"

#include <algorithm>
#include <string>

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMostTold = 50;

std::string told(const bundle::Facts& facts) {
  std::string text = "\n    " + facts.where + (facts.where.empty() ? "" : ": ") + facts.what;
  if (!facts.got.empty() && facts.what.find(facts.got) == facts.what.npos) text += " (" + facts.got + ")";
  if (!facts.next.empty()) text += "\n            " + facts.next;
  return text;
}

}  // namespace

bool WheelFaults::keep(std::size_t index, const Error& error) {
  const bool of_wheel = error.code() == ErrorCode::Format || error.code() == ErrorCode::Conflict ||
                        error.code() == ErrorCode::CannotCheck || error.code() == ErrorCode::Digest;
  if (of_wheel) faults_[index] = error;
  return of_wheel;
}

bool WheelFaults::any() const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [](const std::optional<Error>& fault) { return fault.has_value(); });
}

void WheelFaults::refuse() const {
  std::vector<const Error*> kept;
  for (const std::optional<Error>& fault : faults_)
    if (fault) kept.push_back(&*fault);
  if (kept.empty()) return;
  if (kept.size() == 1) throw Error(*kept.front());
  std::string got;
  for (std::size_t i = 0; i < std::min(kept.size(), kMostTold); ++i) got += told(kept[i]->facts());
  if (kept.size() > kMostTold) got += "\n    and " + std::to_string(kept.size() - kMostTold) + " more";
  throw Error(kept.front()->code(), {.what = std::to_string(kept.size()) + " wheels are not acceptable",
                                     .got = got,
                                     .next = "do for each of them what stands below it, and lock again"});
}

}  // namespace sealift::packager
