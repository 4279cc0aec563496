// SPDX-License-Identifier: Apache-2.0
// This machine's clock, as generation records show it. Nothing is decided by it alone: isolated clocks are often wrong.
#pragma once

#include <string>

#include "sealift/bundle/core/time.hpp"

namespace sealift::installer {

inline std::string now_utc() {
  return bundle::write_time(bundle::system_time());
}

}  // namespace sealift::installer
