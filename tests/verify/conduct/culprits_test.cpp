// SPDX-License-Identifier: Apache-2.0
// The accused is named, in both languages, and the reason stays short.
#include "verify/conduct/culprits.hpp"

#include "verify/conduct/check_kind.hpp"

#include <doctest/doctest.h>

using namespace sealift::verify;

TEST_CASE("all culprits are named once, and the reason says the first three and how many there are besides") {
  Culprits culprits;
  for (const auto* who : {"a", "b", "a", "c", "d"}) culprits.add({who, who}, {"is slow", "偏慢"});
  Check check;
  culprits.settle(check, {"all are fast", "均正常"});
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.at_fault == std::vector<Phrase>{"a", "b", "c", "d"});
  CHECK(check.reason ==
        Phrase{"a: is slow; b: is slow; a: is slow; and 2 more", "a：偏慢；b：偏慢；a：偏慢；另有 2 项"});
}

TEST_CASE("nobody at fault is a pass with its reason, and accuses nobody") {
  Check check;
  Culprits().accuse(check);
  CHECK(check.outcome == Outcome::NotRun);
  Culprits().settle(check, {"all are fast", "均正常"});
  CHECK(check.outcome == Outcome::Pass);
  CHECK(check.reason.en == "all are fast");
  CHECK(check.at_fault.empty());
}

TEST_CASE("what is found after a failure is added to it, and a name that says it all stands alone") {
  Check check;
  check.outcome = Outcome::Fail;
  check.reason = {"the curves differ", "曲线不同"};
  Culprits culprits;
  culprits.add(name_of(Measured{3, "gpu07", "cuda:3", {}, {}, {}}), "");
  culprits.accuse(check);
  CHECK(check.reason.en == "the curves differ; rank 3 on gpu07 (cuda:3)");
  CHECK(check.reason.zh == "曲线不同；gpu07 上的进程 3（cuda:3）");
}
