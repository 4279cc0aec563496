// SPDX-License-Identifier: Apache-2.0
// mesh.hpp and the groups that are made of it: every rank in one group per axis, whatever the axes.
// Arithmetic is checked for every mesh of up to four axes in worlds of up to 16 ranks; then ranks as threads send.
#include <sealift/train/comm/groups.hpp>

#include "tests/support/ranks.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

namespace {

using namespace sealift::train;
using sealift::test::on_ranks;

/// Calls `visit` with every mesh of `axes` axes whose sizes multiply to at most `largest`.
template <class Visit>
void each_mesh(std::size_t axes, std::int64_t largest, const Visit& visit, std::vector<Axis> made = {}) {
  if (made.size() == axes) return visit(Mesh(made));
  static const std::vector<std::string> names{"pipeline", "replicate", "expert", "shard"};
  for (std::int64_t size = 1; size <= largest; ++size) {
    auto longer = made;
    longer.push_back({names[made.size()], size});
    each_mesh(axes, largest / size, visit, longer);
  }
}

/// Every choice of axes of `mesh`.
std::vector<AxisNames> choices(const Mesh& mesh) {
  std::vector<AxisNames> all{{}};
  for (const auto& name : mesh.names()) {
    for (std::size_t i = 0, count = all.size(); i < count; ++i) {
      auto longer = all[i];
      longer.push_back(name);
      all.push_back(longer);
    }
  }
  return all;
}

TEST_CASE("over any axes, every rank is in exactly one group, at its index, and groups are told apart by number") {
  for (std::size_t axes = 1; axes <= 4; ++axes) {
    each_mesh(axes, 16, [](const Mesh& mesh) {
      CAPTURE(mesh.text());
      for (const auto& names : choices(mesh)) {
        std::map<std::int64_t, std::vector<std::int64_t>> groups;  // by number
        bool right = true;
        std::int64_t ranks = 0;
        for (std::int64_t rank = 0; rank < mesh.world_size(); ++rank) {
          const auto members = mesh.members(names, rank);
          right = right && static_cast<std::int64_t>(members.size()) == mesh.size_of(names);
          right = right && std::is_sorted(members.begin(), members.end());
          right = right && members.at(static_cast<std::size_t>(mesh.index(names, rank))) == rank;
          const auto [known, is_new] = groups.emplace(mesh.index(mesh.except(names), rank), members);
          right = right && known->second == members;
          if (is_new) ranks += static_cast<std::int64_t>(members.size());
        }
        REQUIRE(right);
        REQUIRE(ranks == mesh.world_size());  // so the groups do not overlap
      }
    });
  }
}

TEST_CASE("coordinates are the digits of the rank, the last axis first") {
  const Mesh mesh(std::vector<Axis>{{"pipeline", 2}, {"replicate", 3}, {"shard", 4}});
  CHECK(mesh.world_size() == 24);
  CHECK(mesh.coordinate("shard", 23) == 3);
  CHECK(mesh.coordinate("replicate", 17) == 1);
  CHECK(mesh.coordinate("pipeline", 11) == 0);
  CHECK(mesh.coordinate("expert", 11) == 0);
  CHECK(mesh.size("expert") == 1);
  CHECK(mesh.shard == 4);
  CHECK(mesh.replicate == 3);
  CHECK(mesh.members({"replicate"}, 14) == std::vector<std::int64_t>{14, 18, 22});
  CHECK(mesh.members({"shard", "pipeline"}, 5) == std::vector<std::int64_t>{4, 5, 6, 7, 16, 17, 18, 19});
  CHECK(mesh.text() == "pipeline 2 x replicate 3 x shard 4");
  CHECK(Mesh{2, 3} == Mesh(std::vector<Axis>{{"replicate", 2}, {"shard", 3}}));
  CHECK(Mesh{2, 3} != Mesh{3, 2});
}

TEST_CASE("axes with the same name, without a name or without ranks are refused") {
  CHECK_THROWS_WITH(Mesh(std::vector<Axis>{{"shard", 2}, {"shard", 2}}), doctest::Contains("two axes named 'shard'"));
  CHECK_THROWS_WITH(Mesh(std::vector<Axis>{{"", 2}}), doctest::Contains("one without a name"));
  CHECK_THROWS_WITH(Mesh(0, 2), doctest::Contains("axis 'replicate' of a mesh has 0 ranks"));
}

/// The world ranks that `group` reaches.
std::set<std::int64_t> reached(Collectives group, std::int64_t rank) {
  auto whole = torch::full({group.size()}, rank);
  group.all_gather(whole, torch::full({1}, rank)).wait();
  const auto* first = whole.data_ptr<std::int64_t>();
  return {first, first + whole.numel()};
}

TEST_CASE("ranks meet those that the mesh says, along one axis and along two") {
  const Mesh mesh(std::vector<Axis>{{"pipeline", 2}, {"replicate", 2}, {"shard", 2}});
  on_ranks(8, [&](const World& world) {
    const auto groups = make_groups(world, mesh);
    for (const auto& names : choices(mesh)) {
      const auto wanted = mesh.members(names, world.rank);
      CHECK(reached(groups.along(names), world.rank) == std::set<std::int64_t>(wanted.begin(), wanted.end()));
    }
    CHECK(groups.connections->gloo_made() == 1);
    CHECK_THROWS_WITH(groups.along("experts"), doctest::Contains("no axis 'experts' in the mesh pipeline 2 x"));
  });
}

TEST_CASE("a unit is sharded over the axes that it names and copied over others; the core's two are the usual ones") {
  const Mesh mesh(std::vector<Axis>{{"replicate", 2}, {"expert", 2}, {"shard", 2}});
  on_ranks(8, [&](const World& world) {
    const auto groups = make_groups(world, mesh);
    // An expert: its copies are where the expert's number is the same.
    const auto expert = groups.over({"shard"}, {"replicate"});
    CHECK(expert.mesh == Mesh{2, 2});
    CHECK(expert.world.members() == mesh.members({"replicate", "shard"}, world.rank));
    CHECK(expert.shard.members() == groups.shard.members());
    // What all experts share is sharded over two axes, so that each rank holds a quarter.
    const auto dense = groups.over({"expert", "shard"}, {"replicate"});
    CHECK(dense.mesh == Mesh{2, 4});
    CHECK(dense.world.size() == 8);
    CHECK(dense.shard.members() == mesh.members({"expert", "shard"}, world.rank));
    CHECK(dense.subgroup(2).members() == mesh.members({"shard"}, world.rank));
    auto sum = torch::full({1}, world.rank);
    auto quarter = dense.shard;
    quarter.all_reduce(sum).wait();
    const auto first = world.rank / 4 * 4;
    CHECK(sum.item<std::int64_t>() == 4 * first + 6);
    CHECK(expert.traffic == groups.traffic);
  });
}

TEST_CASE("collectives of groups that share connections keep apart, in flight at the same time") {
  on_ranks(4, [](const World& world) {
    auto groups = make_groups(world, {2, 2});
    std::vector<at::Tensor> wholes;
    std::vector<Ticket> tickets;
    const auto own = torch::full({1000}, world.rank);
    std::vector<Collectives> all{groups.world, groups.shard, groups.replicate};
    for (int round = 0; round < 3; ++round) {
      for (auto& group : all) {
        wholes.push_back(torch::empty({group.size() * 1000}, at::kLong));
        tickets.push_back(group.all_gather(wholes.back(), own, "unit"));
      }
    }
    for (auto ticket = tickets.rbegin(); ticket != tickets.rend(); ++ticket) ticket->wait();
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      const auto ranks = all[i % 3].members();
      for (std::size_t j = 0; j < ranks.size(); ++j) {
        CHECK(wholes[i].narrow(0, static_cast<std::int64_t>(j) * 1000, 1000).eq(ranks[j]).all().item<bool>());
      }
    }
  });
}

}  // namespace
