// SPDX-License-Identifier: Apache-2.0
// Refusals of parts that do not depend on one another, kept until all have been asked: somebody whose job has four
// faults is told of four at once, and not of one after each run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

// Throws the one error as it was, or all of them in one message with the code of the first: `what`, then each with its
// own next step, then `next`. Two of one place that say the same are one. Nothing where there are none.
void refuse_together(const std::vector<bundle::Error>& errors, const std::string& what, const std::string& next);

class Refusals {
 public:
  // Calls `part`, and keeps the error by which it refuses. What is no fault of the input (Io, Space) passes.
  void ask(const std::function<void()>& part);
  // As refuse_together.
  void refuse(const std::string& what, const std::string& next) const;

 private:
  std::vector<bundle::Error> kept_;
};

}  // namespace sealift::packager
