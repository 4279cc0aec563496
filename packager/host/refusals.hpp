// SPDX-License-Identifier: Apache-2.0
// Refusals of parts that do not depend on one another, kept until all have been asked: somebody whose job has four
// faults is told of four at once, and not of one after each run.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

// Several of them in one message; the gatherer of refusals takes them apart again.
class SeveralRefusals : public bundle::Error {
 public:
  SeveralRefusals(bundle::ErrorCode code, bundle::Facts facts, std::vector<bundle::Error> all)
      : Error(code, std::move(facts)), each(std::move(all)) {}

  std::vector<bundle::Error> each;
};

// Throws the one error as it was, or SeveralRefusals with the code of the first: `what`, then each with its own next
// step, then `next`. Two of one place that say the same are one. Nothing where there are none.
void refuse_together(const std::vector<bundle::Error>& errors, const std::string& what, const std::string& next);

class Refusals {
 public:
  // Calls `part`, and keeps the error by which it refuses. Errors of the machine (Io, Space) pass.
  void ask(const std::function<void()>& part);
  bool any() const { return !kept_.empty(); }
  // As refuse_together; what one part alone told is thrown as that part told it.
  void refuse(const std::string& what, const std::string& next) const;

 private:
  std::vector<bundle::Error> kept_;
  std::vector<std::exception_ptr> of_parts_;
};

}  // namespace sealift::packager
