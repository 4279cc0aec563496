// SPDX-License-Identifier: Apache-2.0
// Which descriptors the next program of this process gets: stdin, stdout, stderr and the named ones.
// Called between fork and exec, so it makes system calls only. The exec closes them and not this, so that what is done
// until then may still use them.
#pragma once

#include <vector>

namespace sealift::bundle {

// `kept` ascending; whatever else is open above 2 is closed by the next exec.
void close_others_on_exec(const std::vector<int>& kept);

}  // namespace sealift::bundle
