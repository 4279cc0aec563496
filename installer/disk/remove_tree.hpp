// SPDX-License-Identifier: Apache-2.0
// Removes a name and whatever is below it, following no link.
#pragma once

namespace sealift::installer {

// `name` in the open folder `folder`; fine when nothing is there. 0 or an errno; then any part may be left.
int remove_tree_at(int folder, const char* name);

}  // namespace sealift::installer
