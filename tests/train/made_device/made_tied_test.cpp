// SPDX-License-Identifier: Apache-2.0
// An embedding that is the head, too, on made devices: its gradient is the head's product, which comes first in
// backward, and the embedding's tensor, which comes last. The product adds itself to the sum that is reduced over ranks
// (addmm.dtype_out into fp32), and is reduced once, with what comes last.
#include "tests/support/ranks.hpp"
#include "tests/support/staging_backend.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "trainer/models/joined_linear.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <map>

using namespace sealift;
using namespace sealift::trainer;
namespace made = sealift::test::made;

namespace {

constexpr std::int64_t kRanks = 2, kTiedMicroBatches = 2, kSteps = 2, kTokens = 24, kVocabulary = 12, kWidth = 8;

at::Tensor drawn_wide(at::IntArrayRef sizes, std::int64_t seed) {
  const auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
  return at::randn(sizes, generator).to(at::kBFloat16).to(at::kFloat);
}

at::Tensor first_table() {
  return drawn_wide({kVocabulary, kWidth}, 1);
}

/// What is added to all tokens, of the module before the table's.
at::Tensor first_offset() {
  return drawn_wide({kWidth}, 2);
}

/// Rows that differ between steps, micro-batches and ranks.
struct Rows {
  at::Tensor ids, slopes;  ///< [tokens]; of the logits, [tokens, vocabulary]
};

Rows rows_of(std::int64_t step, std::int64_t micro, std::int64_t rank) {
  const auto number = (step * kTiedMicroBatches + micro) * kRanks + rank;
  return {(torch::arange(kTokens) * 7 + number).remainder(kVocabulary),
          drawn_wide({kTokens, kVocabulary}, 100 + number)};
}

struct TiedImpl : torch::nn::Module {
  at::Tensor table{register_parameter("table", first_table())};

  /// [tokens] -> logits [tokens, vocabulary]
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& offset) {
    return joined_linear(at::embedding(table, ids) + offset, {{.weight = table}}).front();
  }
};
TORCH_MODULE(Tied);

struct RootOfTiedImpl : torch::nn::Module {
  at::Tensor offset{register_parameter("offset", first_offset())};
  train::Shardable<Tied> tied{register_module("tied", train::Shardable<Tied>())};

  at::Tensor forward(const at::Tensor& ids) { return tied(ids, offset); }
};
TORCH_MODULE(RootOfTied);

/// The plain way, on the CPU in `dtype`: the mean over ranks of the sums over micro-batches. The head's products are in
/// fp32 and are not rounded.
at::Tensor plain_gradient(std::int64_t step, at::ScalarType dtype) {
  auto sum = at::zeros({kVocabulary, kWidth});
  for (std::int64_t each = 0; each < kTiedMicroBatches * kRanks; ++each) {
    const auto rows = rows_of(step, each / kRanks, each % kRanks);
    auto table = first_table().to(dtype).requires_grad_();
    const auto hidden = at::embedding(table, rows.ids) + first_offset().to(dtype);
    at::matmul(hidden, table.detach().t()).backward(rows.slopes.to(dtype));
    const auto head = rows.slopes.t().mm(hidden.detach().to(at::kFloat));
    sum += (table.grad().to(at::kFloat) + head) / kRanks;
  }
  return sum;
}

/// How often each buffer was reduced.
struct Reductions final : train::Observer {
  std::map<std::string, std::int64_t> count;

  void begin(train::Activity activity, const std::string& unit) override {
    if (activity == train::Activity::Reduce) ++count[unit];
  }
  void end(train::Activity, const std::string&) override {}
};

/// How far this rank's part of the table's gradient is from `whole`, relative to it.
double distance(const train::Parallel& parallel, const at::Tensor& whole) {
  for (const auto& each : parallel.parameters()) {
    if (each.name != "tied.table" || each.shard.numel() == 0) continue;
    const auto wanted = whole.flatten().narrow(0, each.offset, each.shard.numel());
    return ((each.shard.grad().cpu().flatten() - wanted).norm() / wanted.norm()).item<double>();
  }
  return std::numeric_limits<double>::infinity();
}

void check_tied(const train::Policy& policy, at::ScalarType computes) {
  const auto groups_of = [&](const train::World& world) {
    return train::make_groups(world, train::make_mesh(policy, world.size), {.device_engine = test::staging_factory()});
  };
  test::on_ranks(kRanks, [&](train::World world) {
    world.device = made::device(world.rank);
    train::Shardable<RootOfTied> model;
    model->to(world.device);
    auto parallel = train::parallelize(*model, groups_of(world), policy);
    const auto reductions = std::make_shared<Reductions>();
    parallel.observe(reductions);
    for (std::int64_t step = 0; step < kSteps; ++step) {  // buckets are made again after the first
      CAPTURE(step);
      for (auto& shard : parallel.shards()) shard.mutable_grad().reset();
      reductions->count.clear();
      for (std::int64_t micro = 0; micro < kTiedMicroBatches; ++micro) {
        parallel.set_micro_batch(micro, kTiedMicroBatches);
        const auto rows = rows_of(step, micro, world.rank);
        const auto slopes = rows.slopes.to(world.device, computes);
        (model(rows.ids.to(world.device)) * slopes).sum().backward();
      }
      for (const auto& [unit, count] : reductions->count) CHECK_MESSAGE(count == 1, unit);
      CHECK(reductions->count.size() == 2);
      CHECK(distance(parallel, plain_gradient(step, computes)) < 1e-6);
    }
  });
}

}  // namespace

TEST_CASE(
    "an embedding tied to the head gets the head's product and its own gradient, and is reduced once after both") {
  for (const auto method : {train::ParallelMethod::Ddp, train::ParallelMethod::Fsdp}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      CAPTURE(to_string(method));
      CAPTURE(c10::toString(dtype));
      train::Policy policy{.method = method};
      if (dtype != at::kFloat) policy.precision.param_dtype = dtype;
      policy.first_bucket_bytes = policy.bucket_bytes = 1;  // the table's is complete without the offset
      made::install();
      made::reset_counts();
      check_tied(policy, dtype);
      const auto products = made::counts().by_operation["addmm into fp32"];
      CHECK(products == (dtype == at::kFloat ? 0 : kRanks * kTiedMicroBatches * kSteps));
    }
  }
}
