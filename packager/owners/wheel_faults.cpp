// SPDX-License-Identifier: Apache-2.0
#include "packager/owners/wheel_faults.hpp"

#include <algorithm>
#include <utility>

#include "packager/host/refusals.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

// Both can be pasted into the job file.
std::string remedy_for(const std::string& wheel) {
  const auto name = bundle::parse_wheel_name(wheel);
  if (!name) return "use another wheel";
  const std::string project = bundle::normalized_project_name(name->name);
  return "take another version of it, under [python]: constraints = [\"" + project + " != " + name->version +
         "\"]; or leave it out where others ask for it: excludes = [\"" + project + "\"]";
}

}  // namespace

bool WheelFaults::keep(std::size_t index, const std::string& wheel, const Error& error) {
  const bool of_wheel = error.code() == ErrorCode::Format || error.code() == ErrorCode::Conflict ||
                        error.code() == ErrorCode::CannotCheck || error.code() == ErrorCode::Digest;
  if (!of_wheel) return false;
  bundle::Facts facts = error.facts();
  if (facts.next.empty()) facts.next = remedy_for(wheel);
  faults_[index] = Error(error.code(), std::move(facts));
  return true;
}

bool WheelFaults::any() const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [](const std::optional<Error>& fault) { return fault.has_value(); });
}

void WheelFaults::refuse() const {
  std::vector<Error> kept;
  for (const std::optional<Error>& fault : faults_)
    if (fault) kept.push_back(*fault);
  refuse_together(kept, "wheels are not acceptable", "do for each of them what stands below it, and lock again");
}

}  // namespace sealift::packager
