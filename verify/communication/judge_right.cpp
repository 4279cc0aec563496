// SPDX-License-Identifier: Apache-2.0
// Is every element right?
// See judge.hpp.
// Who is wrong is found by blame.hpp.
#include "verify/communication/all_ranks.hpp"
#include "verify/communication/blame.hpp"
#include "verify/communication/judge.hpp"

namespace sealift::verify {

void judge_right(const std::vector<Measured>& all, Check& check) {
  take_facts(all, check);
  double cases = 0;
  for (const auto& measured : all) {
    if (has_values(measured)) cases += measured.values.at("cases").get<double>();
  }
  check.figures.push_back({{"cases on all ranks", "全部进程的用例数"}, cases, "", {}, {}, ""});
  const auto n = std::to_string(static_cast<std::int64_t>(cases)), ranks = std::to_string(all.size());
  blame_for_wrong_elements(all).settle(check, {"every element of " + n + " results on " + ranks + " ranks is right",
                                               ranks + " 个进程的 " + n + " 个结果中每个元素都正确"});
}

}  // namespace sealift::verify
