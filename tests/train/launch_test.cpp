// SPDX-License-Identifier: Apache-2.0
// launch.hpp and collectives.hpp: from variables to a world, and what its collectives count.
// Environments are maps, so no test depends on the one that it runs in.
// Ranks of `connect` are threads that meet over TCP on loopback, as processes do.
#include "tests/support/ranks.hpp"

#include <sealift/train/launch.hpp>

#include <doctest/doctest.h>

#include <map>

using namespace sealift::train;

namespace {

using Variables = std::map<std::string, std::string>;

Launch parse(const Variables& variables) {
  return parse_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {{"RANK", "1"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

}  // namespace

TEST_CASE("no variables mean one process") {
  const auto launch = parse({});
  CHECK(launch.world_size == 1);
  CHECK(launch.rank == 0);
  CHECK(launch.source == "single process (RANK is not set)");
  CHECK(connect(launch).size == 1);
}

TEST_CASE("torchrun's variables are read") {
  const auto launch = parse(kTorchrun);
  CHECK(launch.rank == 1);
  CHECK(launch.world_size == 4);
  CHECK(launch.local_rank == 1);
  CHECK(launch.local_world_size == 2);
  CHECK(launch.master_addr == "127.0.0.1");
  CHECK(launch.master_port == 29500);
  CHECK_FALSE(launch.agent_store);
  CHECK(launch.source == "rank 1 of 4, store at 127.0.0.1:29500");
  CHECK(parse(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True")).agent_store);
  CHECK_FALSE(parse(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "False")).agent_store);
  CHECK(parse(without(kTorchrun, "LOCAL_RANK")).local_rank == 1);
  CHECK(parse(without(kTorchrun, "LOCAL_WORLD_SIZE")).local_world_size == 4);
}

TEST_CASE("incomplete or impossible variables are refused by name and value") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(parse(without(kTorchrun, name)), doctest::Contains(name));
  }
  CHECK_THROWS_WITH(parse(with(kTorchrun, "RANK", "4")),
                    doctest::Contains("RANK is '4'; expected a whole number from 0 to 3"));
  CHECK_THROWS_WITH(parse(with(kTorchrun, "RANK", "-1")), doctest::Contains("RANK is '-1'"));
  CHECK_THROWS_WITH(parse(with(kTorchrun, "WORLD_SIZE", "two")), doctest::Contains("WORLD_SIZE is 'two'"));
  CHECK_THROWS_WITH(parse(with(kTorchrun, "WORLD_SIZE", "0")), doctest::Contains("WORLD_SIZE is '0'"));
  CHECK_THROWS_WITH(parse(with(kTorchrun, "MASTER_PORT", "65536")), doctest::Contains("MASTER_PORT is '65536'"));
  CHECK_THROWS_WITH(parse(with(kTorchrun, "MASTER_PORT", "80 ")), doctest::Contains("MASTER_PORT is '80 '"));
}

TEST_CASE("the address to listen on is the one from which the master is reached") {
  CHECK(local_address_towards("127.0.0.1", 29500) == "127.0.0.1");
  CHECK_THROWS_WITH(local_address_towards("no.such.host.invalid", 29500), doctest::Contains("'no.such.host.invalid'"));
}

TEST_CASE("ranks meet at a store that the launcher serves, and attempts do not mix") {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore agent("127.0.0.1", options);
  for (const std::string attempt : {"0", "1"}) {
    std::vector<std::thread> ranks;
    std::array<std::int64_t, 2> sums{};
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto world = connect(parse({{"RANK", std::to_string(rank)},
                                          {"WORLD_SIZE", "2"},
                                          {"MASTER_ADDR", "127.0.0.1"},
                                          {"MASTER_PORT", std::to_string(agent.getPort())},
                                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                          {"TORCHELASTIC_RESTART_COUNT", attempt}}),
                                   std::chrono::seconds(20));
        auto groups = make_groups(world, {2, 1});
        auto value = torch::tensor({rank + 1}, torch::kInt64);
        groups.world.all_reduce(value).wait();
        sums[static_cast<std::size_t>(rank)] = value.item<std::int64_t>();
      });
    }
    for (auto& rank : ranks) rank.join();
    CHECK(sums == std::array<std::int64_t, 2>{3, 3});
  }
}

TEST_CASE("collectives compute what their names say and count what a ring would send, over 3 ranks") {
  sealift::test::on_ranks(3, [](const World& world) {
    auto groups = make_groups(world, {1, 3});
    const auto mine = torch::full({2}, static_cast<float>(world.rank));
    auto whole = torch::empty({6});
    groups.shard.all_gather(whole, mine).wait();
    CHECK(whole.equal(torch::tensor({0.f, 0.f, 1.f, 1.f, 2.f, 2.f})));
    auto part = torch::empty({2});
    groups.shard.reduce_scatter(part, whole).wait();
    CHECK(part.equal(torch::full({2}, 3.f * static_cast<float>(world.rank))));
    groups.world.all_reduce(part).wait();
    CHECK(part.equal(torch::full({2}, 9.f)));
    auto given = torch::full({3}, static_cast<float>(world.rank + 7));
    groups.world.broadcast(given).wait();
    CHECK(given.equal(torch::full({3}, 7.f)));
    groups.world.barrier();
    CHECK(groups.traffic->all_gather == Traffic{1, 16});
    CHECK(groups.traffic->reduce_scatter == Traffic{1, 16});
    CHECK(groups.traffic->all_reduce == Traffic{1, 16});  // few bytes go to everyone: 8 to each of 2
    CHECK(groups.traffic->broadcast == Traffic{1, 8});
  });
}

TEST_CASE("a group of one does nothing and counts nothing") {
  auto groups = make_groups({}, {});
  auto value = torch::ones({2});
  groups.world.all_reduce(value).wait();
  groups.shard.all_gather(value, value).wait();
  groups.replicate.reduce_scatter(value, value).wait();
  groups.world.barrier();
  CHECK(value.equal(torch::ones({2})));
  CHECK(*groups.traffic == TrafficReport{});
}

TEST_CASE("a mesh connects its rows and its columns, over 4 ranks; another size is refused") {
  sealift::test::on_ranks(4, [](const World& world) {
    auto groups = make_groups(world, {2, 2});
    auto row = torch::full({1}, static_cast<float>(world.rank)), column = row.clone();
    groups.shard.all_reduce(row).wait();
    groups.replicate.all_reduce(column).wait();
    CHECK(row.item<float>() == (world.rank < 2 ? 1 : 5));
    CHECK(column.item<float>() == (world.rank % 2 == 0 ? 2 : 4));
  });
  CHECK_THROWS_WITH(make_groups({}, {2, 2}), doctest::Contains("mesh 2x2 in a world of 1"));
}

TEST_CASE("a rank that does not come is given up on after the timeout") {
  CHECK_THROWS(sealift::test::on_ranks(
      2,
      [](const World& world) {
        auto groups = make_groups(world, {2, 1});
        auto value = torch::ones({1});
        if (world.rank == 0) groups.world.all_reduce(value).wait();
      },
      std::chrono::milliseconds(500)));
}
