// SPDX-License-Identifier: Apache-2.0
// The draft of a run that is not over, and the survivor's verdict.
// Beside folder_test; ended_test.py does it with real ranks.
// Each word is what a person of the site reads, so both languages are held.
#include "verify/report/draft.hpp"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.hpp"

using namespace sealift::verify;
using sealift::test::TempDir;

namespace {

Check check_named(const std::string& name) {
  Check check;
  check.name = name;
  return check;
}

Draft draft_of_two_hosts() {
  return {.verdict = {.site = "bank",
                      .started = "2026-01-31T12:00:00Z",
                      .nodes = {{.host = "gpu01", .ranks = {0}, .devices = {"auto"}},
                                {.host = "gpu02", .ranks = {1}, .devices = {"cuda:0 NVIDIA H100"}}}},
          .left = {check_named("installation.start"), check_named("machine.host")},
          .since = "2026-01-31T12:00:00Z"};
}

const Ending kNotCome{.ranks = {1, 2}, .how = {"did not come within 300 s", "在 300 秒内没有到达"}};

}  // namespace

TEST_CASE("each rank that did not come is at fault, and the rest is not run for it") {
  const auto verdict = finished_by(draft_of_two_hosts(), kNotCome, "2026-01-31T12:05:00Z");
  REQUIRE(verdict.checks.size() == 2);
  CHECK(outcome_of(verdict) == Outcome::Fail);
  const auto& began = verdict.checks[0];
  REQUIRE(began.at_fault.size() == 2);
  CHECK(began.at_fault[0].en == "rank 1 on gpu02 (cuda:0 NVIDIA H100)");
  CHECK(began.at_fault[1].zh == "进程 2");
  CHECK(began.reason.en ==
        "rank 1 on gpu02 (cuda:0 NVIDIA H100), rank 2 did not come within 300 s, while this check "
        "ran since 2026-01-31T12:00:00Z");
  CHECK(began.reason.zh.find("gpu02 上的进程 1（cuda:0 NVIDIA H100）、进程 2：在 300 秒内没有到达") == 0);
  CHECK(verdict.checks[1].outcome == Outcome::NotRun);
  CHECK(verdict.checks[1].reason.en.find("not run: the run ended in installation.start") == 0);
}

TEST_CASE("a device that no rank has named yet is not said") {
  CHECK(name_of_rank(draft_of_two_hosts().verdict, 0).en == "rank 0 on gpu01");
  CHECK(name_of_rank(draft_of_two_hosts().verdict, 0).zh == "gpu01 上的进程 0");
}

TEST_CASE("what a rank left is told with its end, and the first to leave something counts where all were told to end") {
  const TempDir folder;
  leave_word(kNotCome, 2, folder.path());  // without a draft there is nobody to tell
  CHECK_FALSE(find_first_word(folder.path()));
  keep_draft(draft_of_two_hosts(), folder.path());
  CHECK(find_draft(folder.path()) == draft_of_two_hosts());
  leave_word({.ranks = {2}, .how = {"ended: no store answers", "结束：no store answers"}}, 2, folder.path());
  const auto told = with_word(kNotCome, folder.path());
  CHECK(told.ranks == kNotCome.ranks);
  CHECK(told.how.en == "did not come within 300 s; rank 2 ended: no store answers");
  CHECK(told.how.zh == "在 300 秒内没有到达；进程 2 结束：no store answers");
  REQUIRE(find_first_word(folder.path()));
  CHECK(find_first_word(folder.path())->ranks == std::vector<std::int64_t>{2});
  remove_draft(folder.path());
  CHECK_FALSE(find_first_word(folder.path()));
  CHECK_FALSE(find_draft(folder.path()));
}
