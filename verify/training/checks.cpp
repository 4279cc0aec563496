// SPDX-License-Identifier: Apache-2.0
// The list of this room's checks.
// See checks.hpp.
// In the order in which they are run.
#include "verify/training/checks.hpp"

#include "verify/training/golden.hpp"
#include "verify/training/methods.hpp"
#include "verify/training/python_golden.hpp"

namespace sealift::verify {

std::vector<CheckKind> training_checks(const std::vector<std::string>& golden) {
  auto kinds = method_checks();
  for (auto& kind : resume_checks()) kinds.push_back(std::move(kind));
  for (auto& kind : golden_checks(golden)) kinds.push_back(std::move(kind));
  for (auto& kind : python_golden_checks(golden)) kinds.push_back(std::move(kind));
  return kinds;
}

}  // namespace sealift::verify
