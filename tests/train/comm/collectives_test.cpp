// SPDX-License-Identifier: Apache-2.0
// Collectives against a serial reference: every operation, dtype and awkward size, alone and overlapping.
// The values are small whole numbers where the dtype holds them exactly, so most results must be equal to the bit.
#include <sealift/train.hpp>

#include "tests/support/ranks.hpp"

#include <doctest/doctest.h>

namespace {

using namespace sealift::train;
using sealift::test::on_ranks;

/// The input of `rank`: depends on rank and place; small enough that sums of 4 are exact in every dtype but bf16.
at::Tensor values(std::int64_t rank, std::int64_t numel, at::ScalarType dtype) {
  return (torch::arange(numel, at::kInt).mul(7).add(rank * 3).remainder(61).sub(30)).to(dtype);
}

at::Tensor sum(std::int64_t ranks, std::int64_t numel, at::ScalarType dtype) {
  auto total = values(0, numel, at::kDouble);
  for (std::int64_t rank = 1; rank < ranks; ++rank) total += values(rank, numel, at::kDouble);
  return total.to(dtype);
}

void check_every_operation(const Groups& groups, std::int64_t ranks, std::int64_t n, at::ScalarType dtype) {
  auto group = groups.world;
  const auto rank = group.rank();
  CAPTURE(ranks);
  CAPTURE(n);
  CAPTURE(toString(dtype));
  auto whole = torch::full({ranks * n}, 99, dtype);
  group.all_gather(whole, values(rank, n, dtype)).wait();
  for (std::int64_t peer = 0; peer < ranks; ++peer) CHECK(whole.narrow(0, peer * n, n).equal(values(peer, n, dtype)));

  auto in_place = torch::full({ranks * n}, 99, dtype);
  in_place.narrow(0, rank * n, n).copy_(values(rank, n, dtype));
  group.all_gather(in_place, in_place.narrow(0, rank * n, n)).wait();
  CHECK(in_place.equal(whole));

  const auto gradients = values(rank, ranks * n, dtype);
  const auto expected = sum(ranks, ranks * n, dtype);
  auto part = torch::full({n}, 99, dtype);
  group.reduce_scatter(part, gradients).wait();
  CHECK(part.equal(expected.narrow(0, rank * n, n)));
  CHECK(gradients.equal(values(rank, ranks * n, dtype)));  // what was sent is as it was

  auto all = values(rank, n, dtype);
  group.all_reduce(all).wait();
  CHECK(all.equal(sum(ranks, n, dtype)));

  auto given = values(rank, n, dtype);
  group.broadcast(given).wait();
  CHECK(given.equal(values(0, n, dtype)));
}

TEST_CASE("every operation gives what one process computes: dtypes x sizes x 2, 3 and 4 ranks") {
  for (const std::int64_t ranks : {2, 3, 4}) {
    on_ranks(ranks, [ranks](const World& world) {
      const auto groups = make_groups(world, {ranks, 1});
      for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong}) {
        for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, ranks - 1, std::int64_t{1237}}) {
          check_every_operation(groups, ranks, n, dtype);
        }
        check_every_operation(groups, ranks, 1'000'000 / ranks, dtype);
      }
    });
  }
}

TEST_CASE("three million elements come through every operation as one does") {
  on_ranks(2, [](const World& world) {
    const auto groups = make_groups(world, {2, 1});
    for (const auto dtype : {at::kFloat, at::kBFloat16}) check_every_operation(groups, 2, 3'000'017, dtype);
  });
}

TEST_CASE("a sum of bf16 is rounded once, in reduce-scatter; all-reduce stays within an ulp per add") {
  torch::manual_seed(1);  // here: ranks that are threads share the generator
  const auto low = torch::randn({4, 4000}).to(at::kBFloat16);
  const auto wide = low.to(at::kFloat);
  const auto once = (wide[0] + wide[1] + wide[2] + wide[3]).to(at::kBFloat16);
  const auto exact = low.to(at::kDouble).sum(0);
  const auto bound = low.to(at::kDouble).abs().sum(0) * (3.0 / 256);
  on_ranks(4, [&](const World& world) {
    auto groups = make_groups(world, {1, 4});
    auto part = torch::empty({1000}, at::kBFloat16);
    groups.shard.reduce_scatter(part, low[world.rank].contiguous()).wait();
    CHECK(part.equal(once.narrow(0, world.rank * 1000, 1000)));
    auto all = low[world.rank].clone();
    groups.shard.all_reduce(all).wait();
    CHECK((all.to(at::kDouble) - exact).abs().le(bound).all().item<bool>());
  });
}

TEST_CASE("collectives overlap: several in flight on two groups, waited for in any order") {
  on_ranks(4, [](const World& world) {
    auto groups = make_groups(world, {2, 2});
    constexpr std::int64_t kNumel = 30'000;
    for (int round = 0; round < 3; ++round) {
      std::vector<at::Tensor> wholes, parts, sums;
      std::vector<Ticket> tickets;
      for (std::int64_t i = 0; i < 4; ++i) {
        wholes.push_back(torch::empty({2 * kNumel}));
        parts.push_back(torch::empty({kNumel}));
        sums.push_back(torch::full({kNumel}, static_cast<float>(world.rank + i)));
        tickets.push_back(groups.shard.all_gather(wholes[i], values(world.rank + i, kNumel, at::kFloat), "gather"));
        tickets.push_back(groups.replicate.all_reduce(sums[i], "all"));
        tickets.push_back(
            groups.shard.reduce_scatter(parts[i], values(world.rank + i, 2 * kNumel, at::kFloat), "reduce"));
      }
      for (auto ticket = tickets.rbegin(); ticket != tickets.rend(); ++ticket) ticket->wait();
      const auto first = groups.mesh.replicate_rank(world.rank) * 2;
      for (std::int64_t i = 0; i < 4; ++i) {
        CHECK(wholes[i].narrow(0, kNumel, kNumel).equal(values(first + 1 + i, kNumel, at::kFloat)));
        const auto both = values(first + i, 2 * kNumel, at::kFloat) + values(first + 1 + i, 2 * kNumel, at::kFloat);
        CHECK(parts[i].equal(both.narrow(0, groups.shard.rank() * kNumel, kNumel)));
        CHECK(sums[i].equal(
            torch::full({kNumel}, static_cast<float>(2 * groups.mesh.shard_rank(world.rank) + 2 + 2 * i))));
      }
    }
    CHECK(groups.shard.order_checks() <= 6);
  });
}

TEST_CASE("a ticket that nobody waits for still serves the other ranks") {
  on_ranks(2, [](const World& world) {
    auto groups = make_groups(world, {1, 2});
    auto whole = torch::empty({2'000'000});
    {
      auto ticket = groups.shard.all_gather(whole, torch::full({1'000'000}, static_cast<float>(world.rank)));
      if (world.rank == 0) ticket.wait();
    }
    CHECK(whole[1'999'999].item<float>() == 1);
  });
}

TEST_CASE("traffic is what a rank really sends") {
  on_ranks(4, [](const World& world) {
    auto groups = make_groups(world, {1, 4});
    auto whole = torch::ones({4000});
    auto part = torch::ones({1000});
    groups.shard.all_gather(whole, part).wait();
    groups.shard.reduce_scatter(part, whole).wait();
    groups.shard.all_reduce(whole).wait();
    CHECK(groups.traffic->all_gather == Traffic{1, 12'000});
    CHECK(groups.traffic->reduce_scatter == Traffic{1, 12'000});
    CHECK(groups.traffic->all_reduce == Traffic{1, 24'000});
    auto few = torch::ones({2});
    groups.shard.all_reduce(few).wait();
    CHECK(groups.traffic->all_reduce == Traffic{2, 24'000 + 3 * 8});
  });
}

TEST_CASE("all-to-all brings each rank the rows that others have for it, however many; backward rows go back") {
  for (const std::int64_t ranks : {2, 3, 4}) {
    on_ranks(ranks, [ranks](const World& world) {
      auto groups = make_groups(world, {ranks, 1});
      // Rank a has (a + 2 b) % 3 rows for rank b, so some have none, filled with 10 a + b.
      const auto rows = [](std::int64_t from, std::int64_t to) { return (from + 2 * to) % 3; };
      for (const auto dtype : {at::kFloat, at::kBFloat16, at::kLong}) {
        std::vector<std::int64_t> to, from;
        std::vector<at::Tensor> sent, expected;
        for (std::int64_t peer = 0; peer < ranks; ++peer) {
          to.push_back(rows(world.rank, peer));
          from.push_back(rows(peer, world.rank));
          sent.push_back(torch::full({to.back(), 5}, 10 * world.rank + peer, dtype));
          expected.push_back(torch::full({from.back(), 5}, 10 * peer + world.rank, dtype));
        }
        const auto in = at::cat(sent);
        auto out = torch::full({at::cat(expected).size(0), 5}, 99, dtype);
        *groups.traffic = {};
        groups.world.all_to_all(out, in, from, to).wait();
        CHECK(out.equal(at::cat(expected)));
        const auto others = in.size(0) - to[static_cast<std::size_t>(world.rank)];
        CHECK(groups.traffic->all_to_all == Traffic{1, others * 5 * static_cast<std::int64_t>(in.element_size())});
        auto back = torch::full_like(in, 99);
        groups.world.all_to_all(back, out, to, from).wait();
        CHECK(back.equal(in));
      }
      CHECK_THROWS_WITH(groups.world.all_to_all(torch::empty({2}), torch::empty({2}), {2}, {1, 1}),
                        doctest::Contains("one number for each rank"));
    });
  }
  auto out = torch::zeros({3});
  Collectives().all_to_all(out, torch::ones({3}), {3}, {3}).wait();
  CHECK(out.equal(torch::ones({3})));
}

TEST_CASE("a rank that comes to another all-to-all is told apart, though ranks send different numbers of rows") {
  CHECK_THROWS_WITH(
      on_ranks(
          2,
          [](const World& world) {
            auto groups = make_groups(world, {2, 1});
            auto out = torch::empty({2, 3}), in = torch::empty({2, 3});
            groups.world.all_to_all(out, in, {1, 1}, {1, 1}, world.rank == 0 ? "tokens" : "answers").wait();
          },
          std::chrono::seconds(5)),
      doctest::Contains("all_to_all of unit 'answers'"));
}

TEST_CASE("the same ranks as replicas, and neighbours of a shard group as a group of their own") {
  on_ranks(4, [](const World& world) {
    auto groups = make_groups(world, {1, 4});
    auto replicas = groups.replicated();
    CHECK(replicas.mesh == Mesh{4, 1});
    CHECK(replicas.shard.size() == 1);
    auto value = torch::full({1}, static_cast<float>(world.rank));
    replicas.replicate.all_reduce(value).wait();
    CHECK(value.item<float>() == 6);
    CHECK(replicas.traffic == groups.traffic);

    auto pair = groups.subgroup(2);
    CHECK(pair.size() == 2);
    CHECK(pair.rank() == world.rank % 2);
    auto sum = torch::full({1}, static_cast<float>(world.rank));
    groups.subgroup(2).all_reduce(sum).wait();
    CHECK(sum.item<float>() == (world.rank < 2 ? 1 : 5));
    CHECK(groups.subgroup(4).size() == 4);
    CHECK(groups.subgroup(1).size() == 1);
    CHECK_THROWS_WITH(groups.subgroup(3), doctest::Contains("a subgroup of 3 in a shard group of 4"));
  });
}

TEST_CASE("groups can be made again of the same world") {
  on_ranks(2, [](const World& world) {
    for (int time = 0; time < 2; ++time) {
      auto groups = make_groups(world, {2, 1});
      auto value = torch::ones({1});
      groups.world.all_reduce(value).wait();
      CHECK(value.item<float>() == 2);
    }
  });
}

TEST_CASE("buffers that do not fit together, and CUDA tensors in a CPU group, are refused") {
  on_ranks(2, [](const World& world) {
    auto groups = make_groups(world, {1, 2});
    CHECK_THROWS_WITH(groups.shard.all_gather(torch::empty({3}), torch::empty({1})),
                      doctest::Contains("full must hold one shard of the same dtype per rank"));
    CHECK_THROWS_WITH(groups.shard.reduce_scatter(torch::empty({1}), torch::empty({2}, at::kHalf)),
                      doctest::Contains("shard 1 Float"));
    CHECK_THROWS_WITH(groups.shard.all_reduce(torch::empty({4, 4}).t()), doctest::Contains("pass a contiguous one"));
  });
}

TEST_CASE("a rank that never comes to make_groups is named") {
  CHECK_THROWS_WITH(on_ranks(
                        3,
                        [](const World& world) {
                          if (world.rank != 1) make_groups(world, {3, 1});
                        },
                        std::chrono::milliseconds(400)),
                    doctest::Contains("rank 1 of 3 did not come to make_groups within 400 ms"));
}

/// A store that answers late, as one of a busy host: its rank is still connecting when others have connected.
class LateStore final : public c10d::PrefixStore {
 public:
  using PrefixStore::PrefixStore;
  std::vector<std::uint8_t> get(const std::string& key) override { return late(), PrefixStore::get(key); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    late(), PrefixStore::wait(keys, timeout);
  }
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    return late(), PrefixStore::multiGet(keys);
  }

 private:
  static void late() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }
};

TEST_CASE("a job that each rank refuses is refused in the same words by all, also where one connects late") {
  std::vector<std::string> said(3);
  on_ranks(3, [&](World world) {
    if (world.rank == 2) {
      world.store = c10::make_intrusive<LateStore>("job", world.store);
    } else {
      world.store = c10::make_intrusive<c10d::PrefixStore>("job", world.store);
    }
    try {
      make_groups(world, {1, 3});
      throw std::runtime_error("refused");
    } catch (const std::exception& error) {
      said[static_cast<std::size_t>(world.rank)] = error.what();
    }
  });
  CHECK(said == std::vector<std::string>(3, "refused"));
}

}  // namespace
