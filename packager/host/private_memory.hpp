// SPDX-License-Identifier: Apache-2.0
// Keys and passphrases stay in memory for as long as a verb runs. Nothing may keep that memory: no core dump of a
// crash, no debugger of another process of the same user.
#pragma once

namespace sealift::packager {

// Called once, before anything secret is read.
void keep_memory_private();

}  // namespace sealift::packager
