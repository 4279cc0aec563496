// SPDX-License-Identifier: Apache-2.0
// Faults that a judge collects, and the check that they come to.
// Beside the judges of this room and of installation/.
// The first fault is the reason, all of them are named.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

class Faults {
 public:
  /// `who` is at fault: "gpu07", "GPU 3 on gpu07".
  void add(const std::string& who, const Sentence& what);

  /// FAIL naming all, or PASS with `good`.
  void settle(Check& check, const Sentence& good) const;
  std::size_t count() const { return all_.size(); }

 private:
  std::vector<std::pair<std::string, Sentence>> all_;
};

/// Those that have values.
std::vector<const Measured*> with_values(const std::vector<Measured>& all);

}  // namespace sealift::verify
