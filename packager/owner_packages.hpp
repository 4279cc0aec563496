// SPDX-License-Identifier: Apache-2.0
// What `lock` can say of [[owner]] rules before any wheel is there: whether their packages are locked at all. Which
// paths they decide is seen when the wheels are opened, see owner_rules.hpp.
#pragma once

#include "packager/owner_rules.hpp"

namespace sealift::packager {

// Throws Usage, with all of them, for rules that name a package which is not among these normalized names.
void require_packages(const std::vector<OwnerRule>& rules, const std::set<std::string>& packages);

}  // namespace sealift::packager
