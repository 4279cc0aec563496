// SPDX-License-Identifier: Apache-2.0
// Whether a folder is a prefix at all. A mistyped one must not be called healthy, nor get a lock or a generation's
// name.
#pragma once

#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// Whether the folder holds anything that makes it one; its lock alone does not.
bool is_prefix(const Prefix& prefix);

// Throws Missing unless it is one, and names the prefix when the folder lies inside of one. Writes nothing.
void require_prefix(const Prefix& prefix);

}  // namespace sealift::installer
