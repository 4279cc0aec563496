// SPDX-License-Identifier: Apache-2.0
#include "packager/owners/wheel_faults.hpp"

#include <algorithm>

#include "packager/host/refusals.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

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
  std::vector<Error> kept;
  for (const std::optional<Error>& fault : faults_)
    if (fault) kept.push_back(*fault);
  refuse_together(kept, "wheels are not acceptable", "do for each of them what stands below it, and lock again");
}

}  // namespace sealift::packager
