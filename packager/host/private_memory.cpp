// SPDX-License-Identifier: Apache-2.0
// Both are needed: a pipe in core_pattern ignores the limit, and only "not dumpable" keeps debuggers out; see
// private_memory.hpp.
#include "packager/host/private_memory.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

void keep_memory_private() {
  const rlimit none = {0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0 || ::prctl(PR_SET_DUMPABLE, 0) != 0)
    bundle::throw_errno("core dumps cannot be switched off", "sealift-pack");
}

}  // namespace sealift::packager
