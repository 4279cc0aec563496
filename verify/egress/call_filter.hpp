// SPDX-License-Identifier: Apache-2.0
// The filter that a watched program runs under: which calls the kernel asks about.
// Between fork and exec of a watched child.
// As few calls as can take a packet out: everything else runs at full speed.
#pragma once

namespace sealift::verify {

/// Puts this thread, and all that it starts, under the filter. Returns the listener, or -errno. Only async-signal-safe
/// calls. The kernel asks about connect, sendto, sendmsg and sendmmsg; io_uring_setup and calls of another ABI than
/// this program's are answered ENOSYS, because they could send unseen.
int install_call_filter();

}  // namespace sealift::verify
