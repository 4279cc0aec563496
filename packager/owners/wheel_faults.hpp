// SPDX-License-Identifier: Apache-2.0
// What is wrong with wheels, kept until all have been looked at: somebody whose closure has four of them is told of
// four at once, and not of one after each run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

class WheelFaults {
 public:
  explicit WheelFaults(std::size_t count) : faults_(count) {}

  // Keeps the error of one wheel, named by its file; false where it is no fault of a wheel's contents, such as a file
  // that cannot be read. One that says no next step gets one: another version, or none. Safe from several threads, each
  // with indices of its own.
  bool keep(std::size_t index, const std::string& wheel, const bundle::Error& error);

  bool any() const;
  // Throws the one fault as it was, or all of them in one message with the code of the first.
  void refuse() const;

 private:
  std::vector<std::optional<bundle::Error>> faults_;
};

}  // namespace sealift::packager
