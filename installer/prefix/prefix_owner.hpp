// SPDX-License-Identifier: Apache-2.0
// Who may change a prefix: its owner and nobody else. What others can write, or what belongs to them, decides which
// code runs when we install, so it is refused before the first write, as ssh refuses a key file that others can change.
#pragma once

#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// Throws Usage, with the remedy, when the prefix or one of its own folders and files belongs to another user than the
// one who runs this, or can be written by a group or by all, or when a folder above it belongs to a third user or lets
// others rename what is in it (as ssh judges the folders above a key file, and sticky ones pass); Conflict when a link
// or a file stands where a folder must be. What is not there is fine. The prefix's own folder may also be root's.
void require_own_prefix(const Prefix& prefix);

// Whether something was installed here, or begun. The lock alone is not enough: a verb of an older version left one
// wherever it was pointed to.
bool is_prefix(const Prefix& prefix);
// Throws Missing where nothing was ever installed or begun, be there a folder or not, and names the prefix when the
// folder lies inside of one. Writes nothing.
void require_prefix(const Prefix& prefix);

// Whether the prefix, its store and its generations belong to root or to the user who runs this: nobody else's code is
// started.
bool is_own_prefix(const Prefix& prefix);

}  // namespace sealift::installer
