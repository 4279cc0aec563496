// SPDX-License-Identifier: Apache-2.0
// `sealift-train rehearse`: a model's config and a policy in, what one rank of N would send, hold and save out.
// See rehearse.hpp. Before a job is queued; needs neither weights nor the ranks.
// Settings have the names that they have in `sft`; the text is for people, --json for programs.
#include "trainer/rehearse/rehearse.hpp"

#include "trainer/failure.hpp"
#include "trainer/fine_tune/job_model.hpp"
#include "trainer/ranks/job_policy.hpp"
#include "trainer/tuning/lora.hpp"
#include "trainer/verbs/verbs.hpp"

#include <fstream>

namespace sealift::trainer {
namespace {

struct RehearseArguments {
  ParallelOptions parallel;
  RehearsalOptions rehearsal;
  std::string precision = "bf16", tuner = "full";
  std::int64_t lora_rank = 8, timeout_seconds = 300;
  std::uint64_t memory = 0;
  bool keeps_activations = false, json = false;
};

/// As fine-tuning does it: what is trained is kept in fp32, what is frozen in the dtype that is computed in.
RehearsalOptions options_of(const RehearseArguments& arguments) {
  auto options = arguments.rehearsal;
  const auto dtype = compute_dtype(arguments.precision);
  options.policy = make_policy(arguments.parallel, compute_precision(dtype));
  options.recompute = !arguments.keeps_activations;
  options.memory = static_cast<std::int64_t>(arguments.memory);
  options.limits.timeout = std::chrono::seconds(arguments.timeout_seconds);
  if (arguments.tuner == "full") return options;
  options.parameters = dtype.value_or(at::kFloat);
  options.adapt = [rank = arguments.lora_rank](DecoderImpl& model, train::Policy&) { add_lora(model, {.rank = rank}); };
  return options;
}

}  // namespace

void add_rehearse(bundle::Program& program) {
  const auto arguments = std::make_shared<RehearseArguments>();
  auto& [parallel, rehearsal, precision, tuner, lora_rank, timeout, memory, keeps, json] = *arguments;
  parallel.parallel_method = "fsdp";
  const auto verb =
      program.verb("rehearse", "run one rank of a job on N ranks, without tensor values or the other ranks");
  verb.option("model", rehearsal.model, "a model folder, or its config.json").required().existing();
  verb.option("--ranks", rehearsal.ranks, "of the job").required().between(1, 1 << 20);
  verb.option("--rank", rehearsal.rank, "which one is rehearsed").between(0, 1 << 20);
  verb.option("--parallel-method", parallel.parallel_method, "ddp, fsdp or hsdp");
  verb.option("--shard-size", parallel.shard_size, "hsdp: ranks that share one copy of the model");
  verb.option("--wrapping-strategy", parallel.wrapping_strategy, "as in sft");
  verb.option("--blocks-per-unit", parallel.blocks_per_unit, "as in sft");
  verb.option("--reshard-after-forward", parallel.reshard_after_forward, "as in sft");
  verb.option("--keep-gathered", parallel.keep_gathered, "as in sft; unset: where --memory is enough for it");
  verb.option("--expert-ranks", rehearsal.expert_ranks, "ranks that divide the experts of a layer").between(1, 1 << 20);
  verb.option("--precision", precision, "fp32, bf16 or fp16").one_of({"fp32", "bf16", "fp16"});
  verb.option("--tuner", tuner, "full or lora").one_of({"full", "lora"});
  verb.option("--lora-rank", lora_rank, "of adapters").between(1, 1 << 16);
  verb.option("--rows", rehearsal.rows, "of a micro-batch").between(1, 1 << 20);
  verb.option("--tokens", rehearsal.tokens, "of a row").between(1, 1 << 24);
  verb.option("--micro-batches", rehearsal.micro_batches, "of a step").between(1, 1 << 20);
  verb.flag("--keep-activations", keeps, "without gradient checkpointing");
  verb.option("--memory", memory, "of a rank's device, such as 80GB; without: unlimited").bytes();
  verb.option("--max-communicators", rehearsal.limits.communicators, "that a rank may have");
  verb.option("--store-rate", rehearsal.limits.store_requests_a_second,
              "requests a second that the store can answer, of all ranks together");
  verb.option("--timeout-seconds", timeout, "how long ranks are waited for");
  verb.flag("--json", json, "print everything as JSON");
  verb.action([arguments] {
    const auto found = rehearse(options_of(*arguments));
    std::cout << (arguments->json ? found.json().dump(1) + "\n" : found.text());
    return 0;
  });
}

}  // namespace sealift::trainer
