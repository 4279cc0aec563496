// SPDX-License-Identifier: Apache-2.0
// Locked rpm packages as contents of a bundle. In a generation they form a repository, `rpm/`, that dnf on the isolated
// machine can use.
#pragma once

#include <string>
#include <vector>

#include "packager/content/content.hpp"

namespace sealift::packager {

// The packages, the index that `lock` made of exactly these, and the keys that they were signed with.
std::vector<Content> contents_of(const LockedRpm& rpm);

// Another file of this repository, made here.
Content made_rpm_content(const std::string& file, const std::string& text);

}  // namespace sealift::packager
