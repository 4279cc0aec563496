// SPDX-License-Identifier: Apache-2.0
// When the 30 % rule speaks, and which remedies it names.
#include "trainer/monitor/advice.hpp"

#include <doctest/doctest.h>

using namespace sealift::train;
using sealift::trainer::communication_advice;

namespace {

Policy policy_of(ParallelMethod method) {
  Policy policy;
  policy.method = method;
  return policy;
}

bool says(const std::optional<std::string>& advice, const std::string& text) {
  REQUIRE(advice);
  return advice->find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("up to 30 % of a step nothing is said, above it the share and its parts are") {
  const auto fsdp = policy_of(ParallelMethod::Fsdp);
  CHECK_FALSE(communication_advice({.gather = 0.2, .reduce = 0.0999}, fsdp, 1));
  const auto advice = communication_advice({.gather = 0.23, .reduce = 0.18}, fsdp, 1);
  CHECK(says(advice, "takes 41 % of a step (parameters 23 %, gradients 18 %; more than 30 % is too much)"));
}

TEST_CASE("remedies are those that the job does not use yet") {
  auto fsdp = policy_of(ParallelMethod::Fsdp);
  CHECK(says(communication_advice({.gather = 0.4}, fsdp, 1), "micro_batches to accumulate"));
  CHECK(says(communication_advice({.gather = 0.4}, fsdp, 1), "SHARD_GRAD_OP"));
  CHECK(says(communication_advice({.gather = 0.4}, fsdp, 1), "wrapping_strategy"));
  CHECK(says(communication_advice({.gather = 0.4}, fsdp, 1), "ddp, if the model fits one device"));
  CHECK_FALSE(says(communication_advice({.gather = 0.4}, fsdp, 4), "accumulate"));
  CHECK_FALSE(says(communication_advice({.gather = 0.4}, fsdp, 1), "forward_prefetch"));
  fsdp.reshard_after_forward = false;
  fsdp.forward_prefetch = 0;
  fsdp.reduce_every_micro_batch = true;
  CHECK_FALSE(says(communication_advice({.gather = 0.4}, fsdp, 1), "SHARD_GRAD_OP"));
  CHECK(says(communication_advice({.gather = 0.4}, fsdp, 1), "forward_prefetch"));
  CHECK_FALSE(says(communication_advice({.gather = 0.4}, fsdp, 1), "reduce_every_micro_batch"));
  CHECK(says(communication_advice({.gather = 0.4}, fsdp, 2), "reduce_every_micro_batch = false"));
  const auto ddp = communication_advice({.reduce = 0.4}, policy_of(ParallelMethod::Ddp), 1);
  CHECK(says(ddp, "raise global_batch"));
  CHECK_FALSE(says(ddp, "wrapping_strategy"));
  CHECK_FALSE(says(ddp, "hsdp"));
}

TEST_CASE("ranks that wait unevenly point at the one that waits least") {
  const auto ddp = policy_of(ParallelMethod::Ddp);
  CHECK(says(communication_advice({.reduce = 0.5}, ddp, 1, {{.least = 0.05, .most = 0.6, .least_rank = 3}}),
             "from 5 % on rank 3 to 60 %"));
  CHECK_FALSE(
      says(communication_advice({.reduce = 0.5}, ddp, 1, {{.least = 0.45, .most = 0.6, .least_rank = 3}}), "rank"));
}
