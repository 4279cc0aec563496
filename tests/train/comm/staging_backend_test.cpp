// SPDX-License-Identifier: Apache-2.0
// The test backend of several ranks on one GPU, on CPU tensors: its arithmetic is what gpu_test takes for granted.
// See tests/support/staging_backend.hpp. What it does to streams needs a GPU.
#include "tests/support/staging_backend.hpp"
#include "tests/support/ranks.hpp"

#include <sealift/train/comm/collectives.hpp>

#include <doctest/doctest.h>

using namespace sealift;
using test::on_ranks, test::StagingBackend;

namespace {

constexpr std::int64_t kRanks = 3, kNumel = 5;

/// Rank `rank`'s elements [first, first + kNumel): whole numbers that differ between ranks and places.
at::Tensor values(std::int64_t rank, std::int64_t first = 0) {
  return (torch::arange(first, first + kNumel) * 3 + rank * 7).to(at::kFloat);
}

}  // namespace

TEST_CASE("staged collectives give what one process computes") {
  on_ranks(kRanks, [](const train::World& world) {
    StagingBackend backend(world.store, static_cast<int>(world.rank), kRanks, world.timeout, at::kCPU);
    std::vector<at::Tensor> parts;
    for (std::int64_t rank = 0; rank < kRanks; ++rank) parts.push_back(values(rank));
    auto mine = values(world.rank);
    auto whole = torch::zeros({kRanks * kNumel});
    backend._allgather_base(whole, mine)->wait();
    CHECK(whole.equal(at::cat(parts)));

    std::vector<at::Tensor> tensors{mine.clone()};
    backend.allreduce(tensors)->wait();
    const auto sum = parts[0] + parts[1] + parts[2];
    CHECK(tensors[0].equal(sum));

    auto inputs = at::cat({values(world.rank, 0), values(world.rank, 10), values(world.rank, 20)});
    auto shard = torch::zeros({kNumel});
    backend._reduce_scatter_base(shard, inputs)->wait();
    const auto first = world.rank * 10;
    CHECK(shard.equal(values(0, first) + values(1, first) + values(2, first)));

    c10d::AllreduceOptions mean;
    mean.reduceOp = c10d::ReduceOp::AVG;
    tensors = {mine.to(at::kBFloat16)};
    backend.allreduce(tensors, mean)->wait();
    CHECK(tensors[0].equal((sum / kRanks).to(at::kBFloat16)));

    tensors = {mine.to(at::kBFloat16)};
    backend.broadcast(tensors)->wait();
    CHECK(tensors[0].equal(values(0).to(at::kBFloat16)));
  });
}

TEST_CASE("staged collectives run in the order of issue, and one that cannot be done throws where it is waited for") {
  on_ranks(2, [](const train::World& world) {
    StagingBackend backend(world.store, static_cast<int>(world.rank), 2, world.timeout, at::kCPU);
    auto tensor = torch::ones({4});
    std::vector<at::Tensor> tensors{tensor};
    const auto first = backend.allreduce(tensors), second = backend.allreduce(tensors);
    second->wait();
    CHECK(first->isCompleted());
    CHECK(tensor.equal(torch::full({4}, 4.0f)));

    auto wrong = torch::zeros({5});  // not two shards of two
    auto shard = torch::ones({2});
    const auto work = backend._allgather_base(wrong, shard);
    CHECK_THROWS(work->wait());
    CHECK(work->isCompleted());
  });
}
