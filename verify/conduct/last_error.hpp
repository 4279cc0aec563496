// SPDX-License-Identifier: Apache-2.0
// Of all that a failed program said, the line that says why it failed.
// Beside run_child; every check that says why a program failed asks here.
// Programs begin with a banner and end with what follows from the failure; neither is why.
#pragma once

#include <string>

namespace sealift::verify {

/// The last error in `said`, without the program's name, at most 600 bytes; empty where it said nothing. A Python
/// exception's line; else a line of one of our programs that names a cause; else the last line. Lines indented
/// below it belong to it.
std::string last_error(const std::string& said);

}  // namespace sealift::verify
