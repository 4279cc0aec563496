// SPDX-License-Identifier: Apache-2.0
// Who may change a prefix: its owner and nobody else. What others can write, or what belongs to them, decides which
// code runs when we install, so it is refused before the first write, as ssh refuses a key file that others can change.
#pragma once

#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// Throws Usage, with the remedy, when the prefix or one of its own folders and files belongs to another user than the
// one who runs this, or can be written by a group or by all, or when a link or folder on the way to it lets others put
// another one in its place (bundle::require_trusted_path); Conflict when a link or a file stands where a folder must
// be. What is not there is fine. The prefix's own folder may also be root's.
void require_own_prefix(const Prefix& prefix);

// Whether nobody but root and the user who runs this could have put something into the prefix, its store or its
// generations: nobody else's code is started.
bool is_own_prefix(const Prefix& prefix);

}  // namespace sealift::installer
