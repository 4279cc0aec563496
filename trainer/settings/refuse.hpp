// SPDX-License-Identifier: Apache-2.0
// How the trainer refuses what a user wrote: one error, which its verbs print as it is.
#pragma once

#include <stdexcept>
#include <string>

namespace sealift::trainer {

/// Throws std::invalid_argument of `what`: where, what was expected, what was found, what to do.
[[noreturn]] inline void refuse(const std::string& what) {
  throw std::invalid_argument(what);
}

}  // namespace sealift::trainer
