// SPDX-License-Identifier: Apache-2.0
// policy.hpp, mesh.hpp and flat_layout.hpp: arithmetic, so every number is written out.
// The engine relies on them: a wrong offset would be a wrong gradient without any error.
// No tensor and no group is made here.
#include <sealift/train/flat/flat_layout.hpp>

#include <doctest/doctest.h>

using namespace sealift::train;

TEST_CASE("every parallel method is read by the name that is printed for it, any other is refused by name") {
  for (auto method : {ParallelMethod::None, ParallelMethod::Ddp, ParallelMethod::Fsdp, ParallelMethod::Hsdp}) {
    CHECK(parse_parallel_method(to_string(method)) == method);
  }
  CHECK_THROWS_WITH(parse_parallel_method("zero3"), doctest::Contains("'zero3'; use one of none, ddp, fsdp, hsdp"));
}

TEST_CASE("the method decides the mesh") {
  CHECK(make_mesh({.method = ParallelMethod::None}, 1) == Mesh{1, 1});
  CHECK(make_mesh({.method = ParallelMethod::Ddp}, 4) == Mesh{4, 1});
  CHECK(make_mesh({.method = ParallelMethod::Fsdp}, 4) == Mesh{1, 4});
  CHECK(make_mesh({.method = ParallelMethod::Hsdp, .shard_size = 2}, 6) == Mesh{3, 2});
}

TEST_CASE("a mesh that does not fit the world is refused") {
  CHECK_THROWS_WITH(make_mesh({.method = ParallelMethod::None}, 2), doctest::Contains("world of 2 ranks"));
  CHECK_THROWS_WITH(make_mesh({.method = ParallelMethod::Hsdp, .shard_size = 4}, 6), doctest::Contains("must divide"));
  CHECK_THROWS_WITH(make_mesh({.method = ParallelMethod::Hsdp}, 4), doctest::Contains("shard_size is 0"));
  CHECK_THROWS_WITH(make_mesh({.method = ParallelMethod::Fsdp, .shard_size = 2}, 4), doctest::Contains("hsdp only"));
  CHECK_THROWS(make_mesh({.method = ParallelMethod::Ddp}, 0));
}

TEST_CASE("neighbouring ranks share a copy, ranks one copy apart hold the same shard") {
  const Mesh mesh{3, 2};
  CHECK(mesh.shard_rank(4) == 0);
  CHECK(mesh.shard_rank(5) == 1);
  CHECK(mesh.replicate_rank(4) == 2);
  CHECK(mesh.replicate_rank(1) == 0);
}

TEST_CASE("parameters start on cache lines and the flat is padded to equal shards") {
  // 15 * 8 = 120 -> 128; 15 -> 16; 3 * 15 = 45
  const auto layout = make_flat_layout({{15, 8}, {15}, {3, 15}}, 3);
  REQUIRE(layout.placements.size() == 3);
  CHECK(layout.placements[0].offset == 0);
  CHECK(layout.placements[1].offset == 128);
  CHECK(layout.placements[2].offset == 144);
  CHECK(layout.shard_numel == 64);  // 189 over 3, to whole cache lines
  CHECK(layout.padded_numel() == 192);
  CHECK_FALSE(layout.row_aligned);  // lcm(16, 8, 15) = 240 per shard would more than double it
}

TEST_CASE("shard boundaries fall between rows where that costs little") {
  const auto layout = make_flat_layout({{384, 128}, {384}, {128, 512}, {128}}, 4);
  CHECK(layout.row_aligned);
  CHECK(layout.shard_numel % 512 == 0);
  for (std::size_t i = 0; i < layout.placements.size(); ++i) {
    for (std::int64_t shard = 0; shard < 4; ++shard) {
      CHECK(layout.fragment(i, shard).in_parameter % layout.placements[i].row == 0);
      CHECK(layout.fragment(i, shard).numel % layout.placements[i].row == 0);
    }
  }
}

TEST_CASE("fragments cover every element of every parameter once, and stay in their shard") {
  for (std::int64_t shards : {1, 2, 3, 4, 8}) {
    const auto layout = make_flat_layout({{2, 3}, {}, {1}, {13, 12}, {5, 7, 3}, {0, 4}, {64, 64}}, shards);
    CAPTURE(shards);
    for (std::size_t i = 0; i < layout.placements.size(); ++i) {
      std::int64_t next = 0;
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        const auto part = layout.fragment(i, shard);
        REQUIRE(part.numel >= 0);
        if (part.numel == 0) continue;
        CHECK(part.in_parameter == next);
        CHECK(shard * layout.shard_numel + part.in_shard == layout.placements[i].offset + next);
        CHECK(part.in_shard + part.numel <= layout.shard_numel);
        next += part.numel;
      }
      CHECK(next == layout.placements[i].numel);
    }
  }
}

TEST_CASE("a scalar takes one element, and more shards than elements leave some empty") {
  const auto layout = make_flat_layout({{}}, 4);
  CHECK(layout.placements[0].numel == 1);
  CHECK(layout.fragment(0, 0).numel == 1);
  CHECK(layout.fragment(0, 3).numel == 0);
  CHECK(layout.fragment(0, 3).in_shard == 0);
}
