// SPDX-License-Identifier: Apache-2.0
// The one sentence that a verdict comes to.
// See verdict.hpp.
// A fail outweighs all; a pass needs something that was run.
// Which checks were asked for is known by their reason, so that reports of before tell it too.
#include "verify/verdict/verdict.hpp"

#include <algorithm>
#include <array>

namespace sealift::verify {

Outcome outcome_of(const Verdict& verdict) {
  const auto any = [&](Outcome outcome) {
    return std::any_of(verdict.checks.begin(), verdict.checks.end(),
                       [&](const Check& check) { return check.outcome == outcome; });
  };
  if (any(Outcome::Fail)) return Outcome::Fail;
  return any(Outcome::Pass) ? Outcome::Pass : Outcome::NotRun;
}

Phrase part_of_level(Level level) {
  const std::string name = kLevelNames.at(static_cast<std::size_t>(level));
  return {"part of level " + name + "; run with --level " + name,
          "属于 " + name + " 级别；请用 --level " + name + " 运行"};
}

Phrase left_out_by_only() {
  return {"left out: this run was started with other checks chosen (--only)",
          "未选中：启动本次运行时只选择了其他检查项（--only）"};
}

WithoutResult not_run(const Verdict& verdict) {
  const std::array unasked{left_out_by_only(), part_of_level(Level::Full), part_of_level(Level::Burn)};
  WithoutResult found;
  for (const auto& check : verdict.checks) {
    if (check.outcome != Outcome::NotRun) continue;
    const bool asked = std::find(unasked.begin(), unasked.end(), check.reason) == unasked.end();
    (asked ? found.asked : found.unasked).push_back(check.name);
  }
  return found;
}

}  // namespace sealift::verify
