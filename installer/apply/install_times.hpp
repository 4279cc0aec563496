// SPDX-License-Identifier: Apache-2.0
// What an installation cost, so that who waits knows whether for the disk or for the self-test.
#pragma once

#include <cstdint>

namespace sealift::installer {

// By the clock.
struct InstallTimes {
  std::uint64_t unpack = 0;     // milliseconds, as the others
  std::uint64_t build = 0;      // the generation: names, and the audit of what they lead to
  std::uint64_t self_test = 0;  // and bytecode, where it is compiled
};

}  // namespace sealift::installer
