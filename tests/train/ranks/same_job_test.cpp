// SPDX-License-Identifier: Apache-2.0
// Ranks that were given different jobs, as hosts with settings and data of their own may be.
// They trained replicas that parted, or epochs of other examples, without an error. fine_tune_test.py starts such
// ranks.
#include "trainer/ranks/same_job.hpp"
#include "tests/support/ranks.hpp"
#include "trainer/settings/fine_tune_options.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::on_ranks;

TEST_CASE("a rank that was given another job is named on every rank, with what differs") {
  on_ranks(3, [](const train::World& world) {
    auto groups = train::make_groups(world, train::make_mesh({.method = train::ParallelMethod::Ddp}, 3));
    Texts mine{{"learning_rate", "0.5"}, {"system", "no UTF-8: \xff"}};
    CHECK_NOTHROW(require_same_job(groups.world, mine));
    if (world.rank == 2) mine["learning_rate"] = "0.25";
    CHECK_THROWS_WITH(
        require_same_job(groups.world, mine),
        doctest::Contains("rank 2 has another job than rank 0: learning_rate is '0.25', on rank 0 '0.5'"));
    mine["learning_rate"] = "0.5";
    if (world.rank == 1) mine["more"] = "";
    CHECK_THROWS_WITH(require_same_job(groups.world, mine), doctest::Contains("more is '', on rank 0 no setting"));
  });
}

TEST_CASE("what a host may have of its own is no part of the job, everything else is") {
  FineTuneOptions one, two;
  two.threads = 7;
  const auto job = [](const FineTuneOptions& options) {
    return settings_of_job(options, fine_tune_settings(), {"threads"});
  };
  CHECK(job(one) == job(two));
  two.eval_steps = 3;  // changes no number, and what the ranks do when
  CHECK(job(one) != job(two));
}
