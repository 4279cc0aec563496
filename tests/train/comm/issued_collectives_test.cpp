// SPDX-License-Identifier: Apache-2.0
// issued_collectives.hpp: what a rank reports about itself, and what it concludes from the reports of others.
// Reports are written by hand, so no rank and no store is needed; rank_watch_test.cpp has ranks.
// The rank under test is number 0 of three.
#include <sealift/train/comm/issued_collectives.hpp>

#include <doctest/doctest.h>

namespace {

using namespace sealift::train;

const Label kGather{"all_gather", "layer1", 0, 6, at::kFloat};
const Label kReduce{"reduce_scatter", "layer2", 0, 9, at::kFloat};

/// Rank 0 with one group of three ranks, which has issued `labels` and waits for the last of them.
struct Rank {
  explicit Rank(const std::vector<Label>& labels) : group(issued.add_group("world", {0, 1, 2})) {
    for (const auto& label : labels) number = issued.issue(group, label);
    waiting.emplace(issued, labels.back(), group, number, nullptr);
  }

  IssuedCollectives issued{0};
  std::size_t group;
  std::uint64_t number = 0;
  std::optional<IssuedCollectives::Waiting> waiting;

  IssuedCollectives::Wait wait() const { return issued.waits().begin()->second; }
};

/// The report of a rank that has issued `labels` and answers epoch 1.
RankReport report_of(const std::vector<Label>& labels) {
  IssuedCollectives issued(1);
  const auto group = issued.add_group("world", {0, 1, 2});
  for (const auto& label : labels) issued.issue(group, label);
  return issued.report(1, {});
}

}  // namespace

TEST_CASE("a report has the count, the latest collectives of each group and what the rank waits for") {
  const Rank rank({kGather, kReduce});
  const auto report = rank.issued.report(7, rank.issued.waits());
  CHECK(report.epoch == 7);
  CHECK(report.count == std::map<std::string, std::uint64_t>{{"world", 2}});
  CHECK(report.issued.at({"world", 0}) == RankReport::Issued{kGather.hash(), kGather.text()});
  CHECK(report.waits == RankReport::Place{"world", 1});
  CHECK(report.last == kReduce.text());
  CHECK(report_of(std::vector<Label>(100, kGather)).issued.size() == 16);
}

TEST_CASE("ranks that issued different collectives disagree, ranks that issued the same do not") {
  const Rank rank({kGather});
  CHECK(rank.issued.disagreement(rank.wait(), {{1, report_of({kGather})}, {2, report_of({})}}).empty());
  const auto text = rank.issued.disagreement(rank.wait(), {{1, report_of({kGather})}, {2, report_of({kReduce})}});
  CHECK(text.find("rank 0 came to all_gather of unit 'layer1' (6 Float), rank 2 to reduce_scatter") < text.size());
}

TEST_CASE("who is missing is named apart from who is silent: an old report counts as none") {
  const Rank rank({kGather, kReduce});
  const auto text = rank.issued.absence(rank.wait(), {{1, report_of({kGather})}}, 1, "2 s");
  CHECK(text.find("ranks 1, 2 did not come to reduce_scatter of unit 'layer2' (9 Float) of group world") == 0);
  CHECK(text.find("rank 1 last came to all_gather") < text.size());
  CHECK(text.find("no word from rank 2") < text.size());
  const auto later = rank.issued.absence(rank.wait(), {{1, report_of({kGather})}}, 2, "2 s");
  CHECK(later.find("no word from ranks 1, 2") < later.size());
}

TEST_CASE("the first reason for a failure stands, and every later collective throws it") {
  Rank rank({kGather});
  CHECK(!rank.issued.fail_and_abort("a wait that is over", 99));
  CHECK(!rank.issued.has_failed());
  CHECK(rank.issued.fail("disk full"));
  CHECK(!rank.issued.fail("something else"));
  CHECK_THROWS_WITH(rank.issued.issue(rank.group, kReduce), doctest::Contains("disk full"));
  CHECK_THROWS_WITH(rank.issued.stop_at(kReduce), doctest::Contains("rank 0 stops at reduce_scatter"));
}
