// SPDX-License-Identifier: Apache-2.0
// This machine's name, for generation records, receipts and the prefix lock's message. A machine profile, which leaves
// the site, never holds it.
#pragma once

#include <sys/utsname.h>

#include <string>

#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::installer {

inline std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? bundle::SafePath::printable(names.nodename) : "";
}

}  // namespace sealift::installer
