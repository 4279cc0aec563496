// SPDX-License-Identifier: Apache-2.0
// Applies the rules of [[owner]] to the paths that several wheels have: one owner each, before anything is written.
// What a rule may say is in tables/owner_rules.hpp; what is still contested afterwards, PathOwners::check refuses.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "packager/owners/path_owners.hpp"
#include "packager/tables/owner_rules.hpp"

namespace sealift::packager {

// Wheel -> those of its files, by path below the root, that another wheel owns.
using LeftOut = std::map<std::string, std::set<std::string>>;

// Takes from every wheel the paths that a rule gives to another one, and the paths that an earlier wheel brings with
// the same bytes; or with other bytes, where nobody uses the file: `unused` then says whose it is. Throws Usage,
// listing all rules that decide nothing, that name a package without such a path, or that decide a path which another
// rule has decided.
LeftOut settle(PathOwners& owners, const std::vector<OwnerRule>& rules, const std::string& site_packages,
               std::vector<std::string>& unused);

}  // namespace sealift::packager
