// SPDX-License-Identifier: Apache-2.0
// The training, read from the bottom: `run` is the story, each step of it a function above.
// See run.hpp. The loop is loop/loop.hpp's, which fine-tuning has too; here is what this job says to it.
// The loss that is reported is the mean over the global batch, so all methods have the same curve to show.
#include "trainer/verification/run.hpp"

#include "trainer/loop/loop.hpp"
#include "trainer/loop/saving.hpp"
#include "trainer/models/attention_check.hpp"
#include "trainer/models/attention_choice.hpp"
#include "trainer/ranks/job_policy.hpp"
#include "trainer/ranks/locked_folder.hpp"
#include "trainer/ranks/place.hpp"
#include "trainer/ranks/same_job.hpp"
#include "trainer/verification/check.hpp"
#include "trainer/verification/checkpoints.hpp"
#include "trainer/verification/markov.hpp"
#include "trainer/verification/model.hpp"
#include "trainer/verification/traffic.hpp"

#include <cmath>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Sequences of one micro-batch of a rank.
std::int64_t micro_batch_of(const Options& options, std::int64_t world_size) {
  const auto parts = world_size * options.micro_batches;
  TORCH_CHECK(options.global_batch % parts == 0, "global_batch is ", options.global_batch, "; ", world_size,
              " ranks with ", options.micro_batches, " micro-batches each need a multiple of ", parts);
  return options.global_batch / parts;
}

/// The first values are the CPU's random numbers on every device, so that runs on all of them begin alike.
train::Shardable<Gpt> build_model(const Options& options, at::Device device) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  train::Shardable<Gpt> model(GptShape{.vocabulary = options.vocabulary,
                                       .context = options.context,
                                       .layers = options.layers,
                                       .width = options.width,
                                       .heads = options.heads,
                                       .recompute = options.recompute});
  model->to(device);
  return model;
}

/// A layer's attention, as check_attention takes it.
DecoderConfig attention_of(const Options& options) {
  return {.heads = options.heads, .kv_heads = options.heads, .head_dim = options.width / options.heads, .windows = {0}};
}

/// Elements of the whole model, and of the root's unit.
struct GptSize {
  std::int64_t parameters = 0, root = 0;
};

GptSize size_of(torch::nn::Module& model, const train::Policy& policy) {
  GptSize size{.root = train::plan_units(model, policy).front().numel()};
  for (const auto& parameter : model.parameters()) size.parameters += parameter.numel();
  return size;
}

/// Matrices and embeddings decay, biases and norms do not; by name, since a shard of a matrix may be flat.
std::vector<ShardGroup> groups_of(const train::Parallel& parallel) {
  std::vector<ShardGroup> groups = {{.decays = true}, {.decays = false}};
  for (const auto& [name, shard] : parallel.named_shards()) {
    const bool is_matrix = name.ends_with("weight") && name.find("norm") == std::string::npos;
    groups[is_matrix ? 0U : 1U].shards.push_back(shard);
  }
  return groups;
}

/// LibTorch's own betas and epsilon.
OptimizerOptions adamw_of(const Options& options) {
  const torch::optim::AdamWOptions usual;
  const auto [beta1, beta2] = usual.betas();
  return {.learning_rate = options.learning_rate,
          .weight_decay = options.weight_decay,
          .beta1 = beta1,
          .beta2 = beta2,
          .epsilon = usual.eps()};
}

/// Sequences [first, first + count) of the step's global batch, one token longer than the context: [count, context +
/// 1], made on the CPU and on its way to `device` when this returns.
at::Tensor batch_of(const MarkovSource& source, const Options& options, std::int64_t step, std::int64_t first,
                    std::int64_t count, at::Device device) {
  const auto on_host = at::TensorOptions(torch::kInt64).pinned_memory(device.is_cuda());
  auto batch = torch::empty({count, options.context + 1}, on_host);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto tokens = source.tokens(step, first + i, options.context + 1);
    std::copy(tokens.begin(), tokens.end(), batch.mutable_data_ptr<std::int64_t>() + i * (options.context + 1));
  }
  return batch.to(device, /*non_blocking=*/true);
}

/// The job as the loop asks it: the GPT on a batch that is as large however many ranks share it, so that ranks need
/// not tell each other sizes.
class VerificationJob final : public Job {
 public:
  VerificationJob(Training& training, const Options& options, train::Shardable<Gpt> model, const MarkovSource& source)
      : training_(training),
        options_(options),
        model_(std::move(model)),
        source_(source),
        traffic_(training.world.traffic),
        sequences_(micro_batch_of(options, training.place.world_size)) {}

  std::int64_t begin_step() override {
    begin_again();
    traffic_.begin_step();
    return options_.micro_batches;
  }

  at::Tensor loss_of(std::int64_t number) override {
    const auto first = (training_.place.rank * options_.micro_batches + number) * sequences_;
    const auto batch = batch_of(source_, options_, training_.position.step, first, sequences_, device());
    const auto logits = model_(batch.narrow(1, 0, options_.context));
    const auto loss =
        torch::nn::functional::cross_entropy(logits.flatten(0, 1), batch.narrow(1, 1, options_.context).flatten());
    sums_[0] += loss.detach();
    return loss / static_cast<double>(options_.micro_batches);
  }

  void end_micro_batch() override { traffic_.end_micro_batch(); }

  StepSums end_step(const EndWishes& mine) override {
    if (mine.any()) sums_ += torch::tensor({0., double(mine.told), double(mine.late)}, sums_.options());
    training_.world.world.all_reduce(sums_).wait();
    const auto sums = sums_.cpu();
    const auto* sum = sums.const_data_ptr<double>();
    const auto parts = training_.place.world_size * options_.micro_batches;
    return {.loss = sum[0] / static_cast<double>(parts),
            .tokens = options_.global_batch * options_.context,
            .ends = {.told = static_cast<std::int64_t>(sum[1]), .late = static_cast<std::int64_t>(sum[2])}};
  }

  void begin_again() override { sums_ = torch::zeros({3}, at::TensorOptions(device()).dtype(torch::kFloat64)); }

  const torch::nn::Module& model() const override { return *model_; }

  double rate() const override { return options_.learning_rate; }
  std::string beside() const override { return c10::str("  floor ", source_.entropy()); }

  bool saves() const override { return !options_.checkpoint_folder.empty(); }
  bool save_is_due() const override { return is_due(options_, training_.position.step); }
  void save() override { trainer::save(training_, options_, *model_); }

  const StepTraffic& traffic() const { return traffic_; }

 private:
  at::Device device() const { return training_.place.device.device; }

  Training& training_;
  const Options& options_;
  train::Shardable<Gpt> model_;
  const MarkovSource& source_;
  StepTraffic traffic_;
  std::int64_t sequences_;  ///< of a micro-batch
  at::Tensor sums_;         ///< of the step: the losses of this rank's micro-batches, and its wishes to end
};

/// The content of result.json.
nlohmann::ordered_json report(const Training& training, const StepTraffic& traffic, const Options& options,
                              const GptSize& size, double floor, double seconds) {
  const auto& place = training.place;
  const auto& losses = training.position.losses;
  const auto formula = traffic_by_formula(place.policy, place.mesh, size.parameters, size.root, options.micro_batches,
                                          training.parallel.keeps_gathered());
  auto per_step = traffic_json(traffic.step(), &formula);
  per_step["gradient_syncs"] = traffic.gradient_syncs();
  // Fewer steps than the job has by default are a try of the machinery. The slack below the floor is for the noise of
  // one batch; a loss further down means that the data leaks.
  const bool pass = losses.back() <= kFloorFactor * floor && losses.back() >= 0.9 * floor;
  nlohmann::ordered_json result{
      {"parallel_method", train::to_string(place.policy.method)},
      {"world_size", place.world_size},
      {"mesh", {{"replicate", place.mesh.replicate}, {"shard", place.mesh.shard}}},
      {"parameters", size.parameters},
      {"steps", training.position.step},
      {"resumed_after", training.resumed_after},
      {"losses", losses},
      {"entropy_floor", floor},
      {"uniform_loss", std::log(static_cast<double>(options.vocabulary))},
      {"final_loss", losses.back()},
      {"collectives", traffic_json(*training.world.traffic)},
      {"sent_per_step", per_step},
      {"torch_version", TORCH_VERSION},
      {"device", place.device.description},
      {"attention", attention_that_ran()},
      {"threads", at::get_num_threads()},
      {"seconds", seconds},
      {"configuration", comparable(options)},
      {"verdict", options.steps < Options{}.steps || training.ended_by ? "not judged"
                  : pass                                               ? "pass"
                                                                       : "fail"},
  };
  add_ending(training, result);
  return result;
}

}  // namespace

nlohmann::ordered_json run(const Options& options, const train::Launch& launch, std::optional<train::Groups>& world) {
  const auto rank = rank_of(options, launch);
  const auto place = place_in_world(rank, make_policy(options));
  micro_batch_of(options, place.world_size);  // refused before ranks meet
  Monitor monitor(options, place.watched(options.micro_batches));
  world = make_groups(place, find_ranks(rank, options, launch));
  const LockedFolder lock(options.out, world->world);
  monitor.started("connect");
  require_same_job(world->world, settings_of_job(options, settings(),
                                                 {"out", "checkpoint_folder", "resume", "device", "threads",
                                                  "timeout_seconds", "time_limit", "trace", "tensorboard"}));

  const MarkovSource source(options.vocabulary, static_cast<std::uint64_t>(options.seed));
  auto model = build_model(options, place.device.device);
  const auto size = size_of(*model, place.policy);
  monitor.started("model");
  auto parallel = train::parallelize(*model, *world, place.policy);
  parallel.observe(monitor.timeline());
  print_advice(place, parallel, options.micro_batches);
  check_attention(place, attention_of(options), {.longest = options.context});
  auto groups = groups_of(parallel);
  auto training = make_training(place, *world, std::move(parallel), std::move(groups),
                                {.optimizer = adamw_of(options),
                                 .clip = options.clip,
                                 .out = options.out,
                                 .steps = options.steps,
                                 .time_limit = options.time_limit});
  monitor.started("parallelize");
  resume(training, options, *model);
  ask_for_room(training, options);
  monitor.started("load");
  if (place.is_first() && training.position.step > 0) {
    std::cerr << "resuming after step " << training.position.step << '\n';
  }

  *world->traffic = {};
  VerificationJob job(training, options, std::move(model), source);
  const auto start = Clock::now();
  train_to_the_end(training, job, monitor);

  auto result = report(training, job.traffic(), options, size, source.entropy(), seconds_since(start));
  write_result(result, monitor, place, options, *world);
  return result;
}

}  // namespace sealift::trainer
