// SPDX-License-Identifier: Apache-2.0
// Which known word a mistyped one was meant to be, for messages: keys of a job file, names of modules, verbs.
#pragma once

#include <set>
#include <string>

namespace sealift::bundle {

// The one that `text` was meant to be, if it is a slip of the hand away; otherwise empty.
std::string nearest(const std::string& text, const std::set<std::string>& known);

}  // namespace sealift::bundle
