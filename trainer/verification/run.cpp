// SPDX-License-Identifier: Apache-2.0
// The training, read from the bottom: `run` is the story, each step of it a function above.
// See run.hpp. Only the policy tells one process, ddp, fsdp and hsdp apart; the loop does not.
// The loss that is reported is the mean over the global batch, so all methods have the same curve to show.
#include "trainer/verification/run.hpp"

#include "trainer/monitor/step_log.hpp"
#include "trainer/ranks/job_policy.hpp"
#include "trainer/ranks/place.hpp"
#include "trainer/ranks/same_job.hpp"
#include "trainer/verification/check.hpp"
#include "trainer/verification/markov.hpp"
#include "trainer/verification/model.hpp"
#include "trainer/verification/progress.hpp"
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

/// Elements of the whole model, and of the root's unit.
struct ModelSize {
  std::int64_t parameters = 0, root = 0;
};

ModelSize size_of(torch::nn::Module& model, const train::Policy& policy) {
  ModelSize size{.root = train::plan_units(model, policy).front().numel()};
  for (const auto& parameter : model.parameters()) size.parameters += parameter.numel();
  return size;
}

/// Matrices and embeddings decay, biases and norms do not; by name, since a shard of a matrix may be flat.
train::FusedAdamW make_optimizer(const train::Parallel& parallel, const Options& options) {
  std::vector<at::Tensor> decay, keep;
  for (const auto& [name, shard] : parallel.named_shards()) {
    const bool is_matrix = name.ends_with("weight") && name.find("norm") == std::string::npos;
    (is_matrix ? decay : keep).push_back(shard);
  }
  const auto group = [&](std::vector<at::Tensor> shards, double weight_decay) {
    return torch::optim::OptimizerParamGroup(
        std::move(shards), std::make_unique<torch::optim::AdamWOptions>(
                               torch::optim::AdamWOptions(options.learning_rate).weight_decay(weight_decay)));
  };
  const std::vector<torch::optim::OptimizerParamGroup> groups = {group(decay, options.weight_decay), group(keep, 0.0)};
  const auto moments =
      parallel.policy().offload.optimizer_state ? train::Moments::OnHost : train::Moments::WithParameter;
  return train::FusedAdamW(groups, {}, moments);
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

/// Everything that a step changes.
struct Training {
  train::Shardable<Gpt> model;
  train::Parallel parallel;
  train::FusedAdamW optimizer;
  Progress progress;
  StepTraffic traffic;
  std::int64_t resumed_after = 0;  ///< a step; 0: it began anew
};

/// Step `step`, counted from 0: micro-batches, the norm, the optimizer, and the loss of the global batch.
StepResult train_step(Training& training, const Options& options, const Place& place, const MarkovSource& source,
                      train::Groups& world, std::int64_t step) {
  auto& [model, parallel, optimizer, progress, traffic, resumed_after] = training;
  const auto start = Clock::now();
  world.set_step(step + 1);
  optimizer.zero_grad();
  traffic.begin_step();
  const auto device = place.device.device;
  const auto sequences = micro_batch_of(options, place.world_size);
  auto loss_sum = torch::zeros({1}, at::TensorOptions(device).dtype(torch::kFloat64));
  for (std::int64_t micro = 0; micro < options.micro_batches; ++micro) {
    parallel.set_micro_batch(micro, options.micro_batches);
    const auto first = (place.rank * options.micro_batches + micro) * sequences;
    const auto batch = batch_of(source, options, step, first, sequences, device);
    const auto logits = model(batch.narrow(1, 0, options.context));
    auto loss =
        torch::nn::functional::cross_entropy(logits.flatten(0, 1), batch.narrow(1, 1, options.context).flatten());
    loss_sum += loss.detach();
    (loss / static_cast<double>(options.micro_batches)).backward();
    traffic.end_micro_batch();
  }
  world.set_step(step + 1);  // the core counts the steps of this process, which may have resumed
  StepResult result;
  result.gradient_norm =
      options.clip > 0 ? train::clip_grad_norm_(parallel, options.clip).item<double>() : train::gradient_norm(parallel);
  optimizer.step();
  world.world.all_reduce(loss_sum).wait();
  result.loss = loss_sum.item<double>() / static_cast<double>(place.world_size * options.micro_batches);
  TORCH_CHECK(std::isfinite(result.loss), "the loss is ", result.loss, "; try a lower learning_rate");
  result.tokens_per_second = static_cast<double>(options.global_batch * options.context) / seconds_since(start);
  return result;
}

/// Trains from where `training` stands to the last step, saving and logging; an error names its step.
void train_to_the_end(Training& training, const Options& options, const Place& place, const MarkovSource& source,
                      train::Groups& world, Monitor& monitor) {
  auto& progress = training.progress;
  std::optional<StepLog> log;
  if (place.is_first()) log.emplace(options.out, options.steps, progress.step, c10::str("  floor ", source.entropy()));
  while (progress.step < options.steps) {
    const auto number = progress.step + 1;
    try {
      monitor.begin_step();
      const auto result = train_step(training, options, place, source, world, progress.step);
      monitor.end_step(number, result);
      progress.losses.push_back(result.loss);
      progress.step = number;
      if (log) log->add(number, result);  // first, or a run that is killed after saving goes on without this line
      monitor.checkpoint(number, [&] {
        return save_if_due(options, progress, *training.model, training.parallel, training.optimizer);
      });
    } catch (c10::Error& error) {
      error.add_context(c10::str("in step ", number, " of ", options.steps));
      throw;
    } catch (const std::exception& error) {
      TORCH_CHECK(false, "in step ", number, " of ", options.steps, ": ", error.what());
    }
  }
}

/// The content of result.json.
nlohmann::ordered_json report(const Training& training, const Options& options, const Place& place,
                              const ModelSize& size, double floor, const train::Groups& world, double seconds) {
  const auto& losses = training.progress.losses;
  const auto formula = traffic_by_formula(place.policy, place.mesh, size.parameters, size.root, options.micro_batches,
                                          training.parallel.keeps_gathered());
  auto per_step = traffic_json(training.traffic.step(), &formula);
  per_step["gradient_syncs"] = training.traffic.gradient_syncs();
  // Fewer steps than the job has by default are a try of the machinery. The slack below the floor is for the noise of
  // one batch; a loss further down means that the data leaks.
  const bool pass = losses.back() <= kFloorFactor * floor && losses.back() >= 0.9 * floor;
  return {
      {"parallel_method", train::to_string(place.policy.method)},
      {"world_size", place.world_size},
      {"mesh", {{"replicate", place.mesh.replicate}, {"shard", place.mesh.shard}}},
      {"parameters", size.parameters},
      {"steps", training.progress.step},
      {"resumed_after", training.resumed_after},
      {"losses", losses},
      {"entropy_floor", floor},
      {"uniform_loss", std::log(static_cast<double>(options.vocabulary))},
      {"final_loss", losses.back()},
      {"collectives", traffic_json(*world.traffic)},
      {"sent_per_step", per_step},
      {"torch_version", TORCH_VERSION},
      {"device", place.device.description},
      {"threads", place.threads},
      {"seconds", seconds},
      {"configuration", comparable(options)},
      {"verdict", options.steps < Options{}.steps ? "not judged"
                  : pass                          ? "pass"
                                                  : "fail"},
  };
}

}  // namespace

nlohmann::ordered_json run(const Options& options, const train::Launch& launch, std::optional<train::Groups>& world) {
  const auto place = place_in_world(make_policy(options), options, launch);
  micro_batch_of(options, place.world_size);  // refused before ranks meet
  Monitor monitor(options, place.watched(options.micro_batches));
  world = make_groups(place, find_ranks(place, options, launch));
  monitor.started("connect");
  require_same_job(world->world, settings_of_job(options, settings(),
                                                 {"out", "checkpoint_folder", "resume", "device", "threads",
                                                  "timeout_seconds", "trace", "tensorboard"}));

  const MarkovSource source(options.vocabulary, static_cast<std::uint64_t>(options.seed));
  auto model = build_model(options, place.device.device);
  const auto size = size_of(*model, place.policy);
  monitor.started("model");
  auto parallel = train::parallelize(*model, *world, place.policy);
  parallel.observe(monitor.timeline());
  print_advice(place, parallel, options.micro_batches);
  auto optimizer = make_optimizer(parallel, options);
  parallel.check_optimizer(optimizer);
  monitor.started("parallelize");
  auto progress = resume(options, *model, parallel, optimizer);
  monitor.started("load");
  if (place.is_first() && progress.step > 0) std::cerr << "resuming after step " << progress.step << '\n';

  *world->traffic = {};
  const auto resumed_after = progress.step;
  Training training{std::move(model),    std::move(parallel),         std::move(optimizer),
                    std::move(progress), StepTraffic(world->traffic), resumed_after};
  const auto start = Clock::now();
  train_to_the_end(training, options, place, source, *world, monitor);

  auto result = report(training, options, place, size, source.entropy(), *world, seconds_since(start));
  write_result(result, monitor, place, options, *world);
  return result;
}

}  // namespace sealift::trainer
