// SPDX-License-Identifier: Apache-2.0
// Collectives of an engine that runs on a device, as NCCL does: what they give, who is named when they cannot end, and
// how many are made.
// The engine is fake_nccl.hpp's; ranks are threads. What only a GPU can show is in gpu_test.cpp.
#include "tests/train/comm/fake_nccl.hpp"

#include <sealift/train.hpp>

#include "tests/train/comm/reporting_ranks.hpp"

#include <doctest/doctest.h>

#include <latch>

namespace {

using namespace sealift::train;
using sealift::test::FakeFabric;
using sealift::test::gather;
using sealift::test::on_ranks;
using sealift::test::reduce;
using sealift::test::says;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Runs `body(groups, rank)` as every rank of `mesh` over `fabric`; returns what each rank caught and reported.
template <class Body>
std::vector<std::string> what_ranks_say(const std::shared_ptr<FakeFabric>& fabric, const Mesh& mesh, Body body,
                                        milliseconds timeout = std::chrono::seconds(8),
                                        OrderCheck check = OrderCheck::NewOnly) {
  return sealift::test::what_ranks_say(mesh, std::move(body),
                                       {.order_check = check, .device_engine = fabric->factory()}, timeout);
}

at::Tensor values(std::int64_t rank, std::int64_t numel, at::ScalarType dtype = at::kFloat) {
  return torch::arange(numel, at::kLong).mul(7).add(rank * 3).remainder(61).sub(30).to(dtype);
}

TEST_CASE("every operation gives on a device what it gives over Gloo") {
  const auto fabric = std::make_shared<FakeFabric>();
  const auto said = what_ranks_say(fabric, {2, 2}, [](const Groups& groups, std::int64_t rank) {
    for (auto group : {groups.world, groups.shard, groups.replicate}) {
      const auto ranks = group.members();
      for (const auto dtype : {at::kFloat, at::kBFloat16, at::kLong, at::kShort}) {
        auto whole = torch::zeros({group.size() * 5}, dtype);
        group.all_gather(whole, values(rank, 5, dtype)).wait();
        for (std::size_t i = 0; i < ranks.size(); ++i) {
          CHECK(whole.narrow(0, static_cast<std::int64_t>(i) * 5, 5).equal(values(ranks[i], 5, dtype)));
        }
        auto given = values(rank, 5, dtype);
        group.broadcast(given).wait();
        CHECK(given.equal(values(ranks[0], 5, dtype)));
      }
      auto sum = torch::zeros({group.size() * 300});
      for (const auto each : ranks) sum += values(each, group.size() * 300);
      auto part = torch::empty({300});
      group.reduce_scatter(part, values(rank, group.size() * 300), "unit").wait();
      CHECK(part.equal(sum.narrow(0, group.rank() * 300, 300)));
      auto all = values(rank, group.size() * 300);
      group.all_reduce(all, "unit").wait();
      CHECK(all.equal(sum));
    }
  });
  CHECK(said == std::vector<std::string>(4));
}

TEST_CASE("a sum over Gloo is one however it is sent, and of 16 bits is rounded once") {
  on_ranks(3, [](const World& world) {
    auto group = make_groups(world, {3, 1}).world;
    for (const std::int64_t n : {3, 90'000}) {  // at once, and by Gloo's own all-reduce
      auto sum = values(0, n) + values(1, n) + values(2, n);
      auto all = values(world.rank, n);
      group.all_reduce(all, "unit").wait();
      CHECK(all.equal(sum));
    }
    const auto own = (values(world.rank, 300) / 7).to(at::kBFloat16);
    at::Tensor wide = torch::zeros({300});
    for (std::int64_t rank = 0; rank < 3; ++rank) wide += (values(rank, 300) / 7).to(at::kBFloat16).to(at::kFloat);
    auto part = torch::empty({100}, at::kBFloat16);
    group.reduce_scatter(part, own, "unit").wait();
    CHECK(part.equal(wide.to(at::kBFloat16).narrow(0, world.rank * 100, 100)));
  });
  on_ranks(2, [](const World& world) {
    auto group = make_groups(world, {2, 1}).world;
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      auto part = torch::empty({50}, dtype);
      group.reduce_scatter(part, values(world.rank, 100, dtype), "unit").wait();
      const auto sum = values(0, 100) + values(1, 100);
      CHECK(part.equal(sum.to(dtype).narrow(0, world.rank * 50, 50)));
    }
  });
}

TEST_CASE("a group has one communicator, split off the world's; Gloo is connected once for all groups") {
  struct Count {
    Mesh mesh;
    std::size_t engines;
  };
  for (const auto& [mesh, engines] : {Count{{4, 1}, 1}, {{1, 4}, 1}, {{2, 2}, 3}}) {
    CAPTURE(mesh.text());
    const auto fabric = std::make_shared<FakeFabric>();
    const auto said = what_ranks_say(fabric, mesh, [&, engines = engines](const Groups& groups, std::int64_t) {
      auto world = groups.world;
      auto copies = groups.replicate;
      gather(groups, "unit");
      copies.all_reduce(torch::ones({20'000}), "unit").wait();
      world.barrier();
      CHECK(groups.connections->gloo_made() == 1);
      CHECK(groups.connections->engines_made() == static_cast<std::int64_t>(engines));
    });
    CHECK(said == std::vector<std::string>(4));
    std::set<std::string> names;
    for (const auto& [request, splits] : fabric->requests()) {
      names.insert(request.name);
      CHECK((request.name == "world") == !splits);
      CHECK(request.color == request.ranks.front());
      CHECK(request.ranks.size() == static_cast<std::size_t>(request.size));
    }
    CHECK(fabric->requests().size() == engines * 4);
    if (engines == 3) CHECK(names == std::set<std::string>{"replicate0", "replicate1", "shard0", "shard1", "world"});
  }
}

TEST_CASE("on the CPU a group makes connections of its own only for what Gloo does as a whole") {
  on_ranks(4, [](const World& world) {
    const auto groups = make_groups(world, {2, 2});
    gather(groups, "unit");
    reduce(groups, "unit");
    auto copies = groups.replicate;
    copies.all_reduce(torch::ones({4}), "few").wait();
    CHECK(groups.connections->gloo_made() == 1);
    copies.all_reduce(torch::ones({20'000}), "many").wait();
    copies.all_reduce(torch::ones({20'000}), "many").wait();
    CHECK(groups.connections->gloo_made() == 2);
  });
}

TEST_CASE("waiting for a device blocks no thread, and what it wrote to is not kept") {
  const auto fabric = std::make_shared<FakeFabric>();
  fabric->blocking = false;
  std::latch waited(1), done(1);
  const auto said = what_ranks_say(
      fabric, {1, 2},
      [&](const Groups& groups, std::int64_t rank) {
        auto group = groups.shard;
        auto whole = torch::zeros({6});
        const auto own = torch::full({3}, static_cast<float>(rank + 1));
        if (rank == 1) waited.wait();
        group.all_gather(whole, own, "unit").wait();
        if (rank == 0) {
          CHECK(whole.sum().item<float>() == 0);  // rank 1 has not come
          CHECK(whole.storage().use_count() == 1);
          waited.count_down();
          done.wait();
        } else {
          done.count_down();
        }
        CHECK(whole.sum().item<float>() == 9);
      },
      std::chrono::seconds(8), OrderCheck::Off);
  CHECK(said == std::vector<std::string>(2));
}

TEST_CASE("a rank that does not come to a collective on a device is named, and the others' streams go on") {
  const auto fabric = std::make_shared<FakeFabric>();
  std::latch over(2);
  const auto start = Clock::now();
  const auto said = what_ranks_say(
      fabric, {1, 3},
      [&](const Groups& groups, std::int64_t rank) {
        groups.set_step(17);
        gather(groups, "layer3");
        reduce(groups, "layer3");
        gather(groups, "layer3");
        if (rank == 1) return over.wait();  // it computes and computes
        try {
          reduce(groups, "layer3");
        } catch (...) {
          over.count_down();
          throw;
        }
      },
      std::chrono::seconds(1));
  for (const auto rank : {0, 2}) {
    CHECK(says(said[static_cast<std::size_t>(rank)],
               "rank 1 did not come to reduce_scatter of unit 'layer3' (9 Float) of group world in step 17 within 1 s; "
               "ranks 0, 2 wait there; rank 1 last came to all_gather of unit 'layer3' (6 Float)"));
  }
  CHECK(said[1].empty());
  CHECK(fabric->aborted());
  CHECK(Clock::now() - start < std::chrono::seconds(6));
}

TEST_CASE("ranks that issue different collectives on their devices are both named long before the time-out") {
  const auto fabric = std::make_shared<FakeFabric>();
  const auto start = Clock::now();
  const auto said = what_ranks_say(fabric, {1, 2}, [](const Groups& groups, std::int64_t rank) {
    for (const char branch : {'a', 'b', 'a', 'a', 'b'}) branch == 'a' ? gather(groups, "a") : reduce(groups, "b");
    gather(groups, "a");
    groups.set_step(9);
    rank == 0 ? reduce(groups, "b") : gather(groups, "a");
  });
  for (const auto& text : said) {
    CHECK(says(text, "ranks disagree in step 9"));
    CHECK(says(text, "reduce_scatter of unit 'b' (6 Float)"));
    CHECK(says(text, "all_gather of unit 'a' (4 Float)"));
  }
  CHECK(Clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a host that runs far ahead of its device is still told where the ranks went apart") {
  const auto fabric = std::make_shared<FakeFabric>();
  fabric->blocking = false;
  std::vector<at::Tensor> kept;  // the engine has their addresses
  std::mutex guard;
  const auto said = what_ranks_say(
      fabric, {1, 2},
      [&](const Groups& groups, std::int64_t rank) {
        auto group = groups.shard;
        for (int i = 0; i < 200; ++i) {
          const auto unit = i == 0 && rank == 1 ? "other" : "layer" + std::to_string(i);
          auto whole = torch::empty({2 + 2 * (i == 0 ? rank : 0)}), own = torch::empty({whole.numel() / 2});
          {
            const std::lock_guard lock(guard);
            kept.insert(kept.end(), {whole, own});
          }
          group.all_gather(whole, own, unit).wait();
        }
        while (!groups.watch->issued().has_failed()) std::this_thread::yield();
        group.barrier();
      },
      std::chrono::seconds(8), OrderCheck::Off);
  for (const auto& text : said) CHECK(says(text, "came to all_gather of unit"));
  for (const auto& text : said) CHECK(says(text, "unit 'other' (4 Float)"));
}

TEST_CASE("an engine that breaks on the device ends every rank with what it said") {
  const auto fabric = std::make_shared<FakeFabric>();
  const auto said = what_ranks_say(fabric, {1, 2}, [&](const Groups& groups, std::int64_t rank) {
    for (int i = 0; i < 3; ++i) gather(groups, "a");
    if (rank == 1) {
      fabric->break_all("remote process exited");
      while (!groups.watch->issued().has_failed()) std::this_thread::yield();
    }
    while (true) gather(groups, "a");
  });
  for (const auto& text : said) CHECK(says(text, "all_gather of unit 'a' (4 Float) broke on rank"));
}

TEST_CASE("why a rank failed reaches ranks whose streams wait for it") {
  const auto fabric = std::make_shared<FakeFabric>();
  const auto said = what_ranks_say(fabric, {2, 2}, [](const Groups& groups, std::int64_t rank) {
    auto copies = groups.replicate;
    for (std::int64_t step = 0;; ++step) {
      groups.set_step(step);
      if (rank == 3 && step == 7) throw std::runtime_error("disk full");
      gather(groups, "layer1");
      copies.all_reduce(torch::ones({1000}), "layer1").wait();
    }
  });
  for (const auto rank : {0, 1, 2}) {
    CHECK(says(said[static_cast<std::size_t>(rank)], "rank 3 failed in step 7: disk full"));
  }
  CHECK(said[3] == "disk full");
}

TEST_CASE("a rank that does not come when communicators are made is named") {
  const auto fabric = std::make_shared<FakeFabric>();
  std::latch over(3);
  const auto said = what_ranks_say(
      fabric, Mesh(std::vector<Axis>{{"pipeline", 2}, {"shard", 2}}),
      [&](const Groups& groups, std::int64_t rank) {
        if (rank == 3) return over.wait();
        try {
          groups.along("pipeline");
        } catch (...) {
          over.count_down();
          throw;
        }
      },
      std::chrono::seconds(1));
  for (const auto rank : {0, 1, 2}) {
    CHECK(says(said[static_cast<std::size_t>(rank)], "rank 3 did not come to connect of unit 'pipeline'"));
  }
}

TEST_CASE("a slow rank is waited for") {
  const auto fabric = std::make_shared<FakeFabric>();
  const auto said = what_ranks_say(
      fabric, {1, 2},
      [](const Groups& groups, std::int64_t rank) {
        gather(groups, "a");
        if (rank == 1) {  // until rank 0 has waited long enough to ask where this rank is
          while (groups.connections->world.store->add("groups1/watch/epoch", 0) == 0) std::this_thread::yield();
        }
        gather(groups, "a");
      },
      std::chrono::seconds(4));
  CHECK(said == std::vector<std::string>(2));
}

TEST_CASE("a device without an engine, or without a number, is refused before anything is made") {
  on_ranks(2, [](World world) {
    world.device = at::Device(at::kCUDA);
    CHECK_THROWS_WITH(make_groups(world, {2, 1}), doctest::Contains("give each rank of a host its own, by LOCAL_RANK"));
  });
}

}  // namespace
