// SPDX-License-Identifier: Apache-2.0
// The policy of a fine-tuning job, which is made once its method is settled.
// Which method `auto` takes is tested by plan_test.cpp, and with real ranks by fine_tune_test.py.
#include "trainer/fine_tune/method_choice.hpp"

#include "trainer/fine_tune/planned_job.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;

namespace {

FineTuneOptions made_job(const std::string& method, const std::string& precision) {
  FineTuneOptions options;
  options.parallel_method = method;
  options.precision = precision;
  return options;
}

}  // namespace

TEST_CASE("only a job that says auto leaves its method open") {
  CHECK(leaves_method_open(made_job("auto", "fp32")));
  for (const auto* method : {"", "none", "ddp", "fsdp"}) CHECK_FALSE(leaves_method_open(made_job(method, "fp32")));
}

TEST_CASE("one process without a method has units where a dtype, four bits or offloading need them") {
  using train::ParallelMethod;
  CHECK(policy_of(made_job("none", "fp32"), 1).method == ParallelMethod::None);
  CHECK(policy_of(made_job("", "bf16"), 1).method == ParallelMethod::Ddp);
  CHECK(policy_of(made_job("none", "bf16"), 2).method == ParallelMethod::None);  // which a world of two refuses
  auto options = made_job("none", "fp32");
  options.tuner_type = "qlora";
  CHECK(policy_of(options, 1).method == ParallelMethod::Ddp);
  options = made_job("none", "fp32");
  options.offload = {"optimizer_state"};
  CHECK(policy_of(options, 1).method == ParallelMethod::Ddp);
}

TEST_CASE("fine-tuning computes in 16 bits and sums in 32") {
  CHECK(policy_of(made_job("fsdp", "fp32"), 2).precision == train::MixedPrecision{});
  for (const auto& [word, dtype] : {std::pair{"bf16", at::kBFloat16}, {"fp16", at::kHalf}}) {
    const auto precision = policy_of(made_job("fsdp", word), 2).precision;
    CHECK(precision.param_dtype == dtype);
    CHECK(precision.reduce_dtype == at::kFloat);
    CHECK(precision.output_dtype == at::kFloat);
    CHECK_FALSE(precision.buffer_dtype);
  }
}

TEST_CASE("a rank's place has the mesh of its policy, and none is made where the ranks do not fit it") {
  const Rank rank{.device = {}, .rank = 1, .world_size = 4};
  auto options = made_job("hsdp", "fp32");
  options.shard_size = 2;
  const auto place = place_in_world(rank, policy_of(options, 4));
  CHECK(place.rank == 1);
  CHECK(place.mesh.shard == 2);
  CHECK(place.mesh.replicate == 2);
  options.shard_size = 3;
  CHECK_THROWS(place_in_world(rank, policy_of(options, 4)));
}

TEST_CASE("a pair is planned as the row that it is: both answers, which do not see each other") {
  auto options = made_job("ddp", "fp32");
  options.per_device_train_batch_size = 3;
  options.max_length = 100;
  const auto batch = [&] { return planned_way(options, {}, 1).batch; };
  CHECK(batch().length == 100);
  CHECK_FALSE(batch().packed);
  for (const auto task : {Task::Dpo, Task::Reward}) {
    options.task = task;
    CHECK(batch().rows == 3);
    CHECK(batch().length == 200);
    CHECK(batch().packed);
  }
  options.packing = true;
  CHECK(batch().length == 100);
}
