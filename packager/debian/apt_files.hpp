// SPDX-License-Identifier: Apache-2.0
// Locked Debian packages as contents of a bundle. In a generation they form a flat repository, `apt/`, that apt on the
// isolated machine can use as a source.
#pragma once

#include <string>
#include <vector>

#include "packager/content/content.hpp"

namespace sealift::packager {

// Debian's name of an architecture that uname names.
std::string debian_arch(const std::string& arch);

// The packages, and the index that `lock` made of exactly these.
std::vector<Content> contents_of(const LockedApt& apt);

}  // namespace sealift::packager
