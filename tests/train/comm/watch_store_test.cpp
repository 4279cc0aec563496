// SPDX-License-Identifier: Apache-2.0
// watch_store.hpp: reports and failures of ranks come out of the store as they went in.
// Three ranks share one store in this process; nothing here waits.
// What the watch concludes from them is in issued_collectives_test.cpp and rank_watch_test.cpp.
#include <sealift/train/comm/watch_store.hpp>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <doctest/doctest.h>

using namespace sealift::train;

TEST_CASE("a report that was posted is read as it was, by every rank") {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  const WatchStore first(store, 0, 3), second(store, 1, 3);
  const RankReport report{.epoch = 5,
                          .count = {{"world", 3}, {"shard0", 1}},
                          .issued = {{{"world", 2}, {~std::uint64_t{0}, "all_gather of unit 'a b' (6 Float)"}}},
                          .waits = RankReport::Place{"world", 2},
                          .last = "barrier (2 Byte)"};
  CHECK(!second.report_of(0));
  first.post(report);
  CHECK(second.report_of(0) == report);
  CHECK(read_report(write_report({})) == RankReport{});
}

TEST_CASE("every failure and every request for reports begins an epoch") {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  const WatchStore first(store, 0, 3), second(store, 1, 3);
  CHECK(first.epoch() == 0);
  CHECK(first.begin_epoch() == 1);
  CHECK(second.post_failure(WatchStore::Failure::Symptom, "it broke") == 2);
  CHECK(first.epoch() == 2);
}

TEST_CASE("a cause is told from a symptom, and ranks that posted nothing are silent") {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  const WatchStore first(store, 0, 3), second(store, 1, 3), third(store, 2, 3);
  CHECK(first.failures().silent == std::vector<std::int64_t>{1, 2});
  second.post_failure(WatchStore::Failure::Symptom, "the connection closed");
  CHECK(first.failures().cause.empty());
  CHECK(first.failures().silent == std::vector<std::int64_t>{2});
  third.post_failure(WatchStore::Failure::Cause, "disk full");
  CHECK(first.failures().cause == "disk full");
}
