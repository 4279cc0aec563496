// SPDX-License-Identifier: Apache-2.0
// Removes what lies below a folder, on several threads: a removal mostly waits, for a server or for a disk that is told
// of each freed block (mounted with `discard`), and gets a busy processor back late. Waits that overlap cost a
// fraction.
#pragma once

#include <functional>

namespace sealift::bundle {

// `folder` is an open folder and stays. `go_on` is asked before each name, by any of the threads; false ends it early.
// Follows no link. Opens at most 768 files. Says nothing of failures, and enters no folder below 32 others: the caller
// looks at what is left.
void empty_folder(int folder, const std::function<bool()>& go_on);

}  // namespace sealift::bundle
