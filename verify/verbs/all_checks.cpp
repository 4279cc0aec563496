// SPDX-License-Identifier: Apache-2.0
// The rooms' lists, one after the other.
// See all_checks.hpp.
// A misspelt --only is refused on each rank by itself, so that none waits for another that has ended.
#include "verify/verbs/all_checks.hpp"

#include "verify/arithmetic/checks.hpp"
#include "verify/communication/checks.hpp"
#include "verify/conduct/start_check.hpp"
#include "verify/egress/checks.hpp"
#include "verify/installation/checks.hpp"
#include "verify/machine/checks.hpp"
#include "verify/training/checks.hpp"

#include <algorithm>
#include <stdexcept>

namespace sealift::verify {

std::vector<CheckKind> all_checks(train::Groups& world, at::Device device, const std::vector<std::string>& golden,
                                  std::function<std::vector<Attempt>()> packets) {
  std::vector<CheckKind> kinds{start_check()};
  const auto add = [&](std::vector<CheckKind> more) { std::move(more.begin(), more.end(), std::back_inserter(kinds)); };
  add(installation_checks());
  add(machine_checks());
  add(arithmetic_checks(device));
  add(communication_checks(world));
  add(training_checks(golden));
  add(egress_checks(std::move(packets)));
  return kinds;
}

void need_checks(const std::vector<CheckKind>& kinds, const std::vector<std::string>& only, std::int64_t rank) {
  std::string all;
  for (const auto& kind : kinds) all += (all.empty() ? "" : ", ") + kind.name;
  for (const auto& name : only) {
    if (rank != 0 && (name.starts_with("training.golden") || name.starts_with("python."))) continue;
    const bool known =
        std::any_of(kinds.begin(), kinds.end(), [&](const CheckKind& kind) { return kind.name.starts_with(name); });
    if (!known) throw std::invalid_argument("--only " + name + " leaves no check of: " + all);
  }
}

}  // namespace sealift::verify
