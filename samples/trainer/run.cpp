// SPDX-License-Identifier: Apache-2.0
// The training loop, read top to bottom: connect, build, parallelize, step, report.
// See run.hpp. Only the policy tells one process, ddp, fsdp and hsdp apart; the loop does not.
// The loss that is reported is the mean over the global batch, so all of them have the same curve to show.
#include "run.hpp"

#include "check.hpp"
#include "job_policy.hpp"
#include "markov.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "traffic.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

/// What the core advises: of several warnings with one remedy, the first.
void print_warnings(const train::Parallel& parallel) {
  std::map<std::string, std::vector<std::string>> by_remedy;
  for (const auto& warning : parallel.warnings()) by_remedy[warning.substr(warning.rfind(';') + 1)].push_back(warning);
  for (const auto& [remedy, warnings] : by_remedy) {
    std::cerr << "note: " << warnings.front();
    if (warnings.size() > 1) std::cerr << "; and " << warnings.size() - 1 << " more such";
    std::cerr << '\n';
  }
}

/// Sequences [first, first + count) of the step's global batch, one token longer than the context: [count, context + 1]
at::Tensor batch_of(const MarkovSource& source, const Options& options, std::int64_t step, std::int64_t first,
                    std::int64_t count) {
  auto batch = torch::empty({count, options.context + 1}, torch::kInt64);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto tokens = source.tokens(step, first + i, options.context + 1);
    std::copy(tokens.begin(), tokens.end(), batch.mutable_data_ptr<std::int64_t>() + i * (options.context + 1));
  }
  return batch;
}

std::ofstream open_for_writing(const std::filesystem::path& path, std::ios::openmode mode = std::ios::trunc) {
  std::ofstream file(path, std::ios::out | mode);
  TORCH_CHECK(file, "cannot write ", path.string(), "; choose another folder with --out");
  return file;
}

}  // namespace

nlohmann::ordered_json run(const Options& options, const train::Launch& launch, std::optional<train::Groups>& world) {
  const auto policy = make_policy(options);
  const auto mesh = train::make_mesh(policy, launch.world_size);
  const auto parts = launch.world_size * options.micro_batches;
  TORCH_CHECK(options.global_batch % parts == 0, "global_batch is ", options.global_batch, "; ", launch.world_size,
              " ranks with ", options.micro_batches, " micro-batches each need a multiple of ", parts);
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const auto threads =
      options.threads > 0 ? options.threads : std::max<std::int64_t>(1, cores / launch.local_world_size);
  at::set_num_threads(static_cast<int>(threads));
  const bool speaks = launch.rank == 0;

  world = train::make_groups(train::connect(launch, std::chrono::seconds(options.timeout_seconds)), mesh);
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  train::Shardable<Gpt> model(GptShape{.vocabulary = options.vocabulary,
                                       .context = options.context,
                                       .layers = options.layers,
                                       .width = options.width,
                                       .heads = options.heads,
                                       .recompute = options.recompute});
  std::int64_t parameters = 0;
  for (const auto& parameter : model->parameters()) parameters += parameter.numel();
  const auto root_parameters = train::plan_units(*model, policy).front().numel();
  auto parallel = train::parallelize(*model, *world, policy);
  if (speaks && mesh.shard > 1) print_warnings(parallel);
  auto optimizer = make_optimizer(parallel, options);
  parallel.check_optimizer(optimizer);
  auto progress = resume(options, *model, parallel, optimizer);
  const auto first_step = progress.step;
  if (speaks && first_step > 0) std::cerr << "resuming after step " << first_step << '\n';
  *world->traffic = {};

  const MarkovSource source(options.vocabulary, static_cast<std::uint64_t>(options.seed));
  const double floor = source.entropy();
  std::ofstream log;
  if (speaks) {
    std::filesystem::create_directories(options.out);
    log = open_for_writing(std::filesystem::path(options.out) / "log.jsonl",
                           first_step > 0 ? std::ios::app : std::ios::trunc);
  }

  auto& losses = progress.losses;
  StepTraffic traffic(world->traffic);
  const auto micro_batch = options.global_batch / parts;
  const auto tokens_per_step = static_cast<double>(options.global_batch * options.context);
  const auto start = Clock::now();
  auto last_line = start;
  for (auto step = first_step; step < options.steps; ++step) {
    const auto step_start = Clock::now();
    world->set_step(step + 1);
    try {
      optimizer.zero_grad();
      traffic.begin_step();
      auto loss_sum = torch::zeros({1}, torch::kFloat64);
      for (std::int64_t micro = 0; micro < options.micro_batches; ++micro) {
        parallel.set_micro_batch(micro, options.micro_batches);
        const auto first = (launch.rank * options.micro_batches + micro) * micro_batch;
        const auto batch = batch_of(source, options, step, first, micro_batch);
        const auto logits = model(batch.narrow(1, 0, options.context));
        auto loss =
            torch::nn::functional::cross_entropy(logits.flatten(0, 1), batch.narrow(1, 1, options.context).flatten());
        loss_sum += loss.detach();
        (loss / static_cast<double>(options.micro_batches)).backward();
        traffic.end_micro_batch();
      }
      parallel.prepare_step();
      world->set_step(step + 1);  // the core counts from where this process began
      const double norm =
          options.clip > 0 ? train::clip_grad_norm_(parallel, options.clip) : train::gradient_norm(parallel);
      optimizer.step();
      world->world.all_reduce(loss_sum).wait();
      losses.push_back(loss_sum.item<double>() / static_cast<double>(parts));
      TORCH_CHECK(std::isfinite(losses.back()), "the loss is ", losses.back(), "; try a lower learning_rate");
      const double rate = tokens_per_step / seconds_since(step_start);
      progress.step = step + 1;
      save_if_due(options, progress, *model, parallel, optimizer);
      if (!speaks) continue;
      log << nlohmann::ordered_json{{"step", step + 1},
                                    {"loss", losses.back()},
                                    {"grad_norm", norm},
                                    {"tokens_per_second", rate}}
          << '\n'
          << std::flush;
      if (step == first_step || step + 1 == options.steps || seconds_since(last_line) > 2) {
        last_line = Clock::now();
        const double left = seconds_since(start) / static_cast<double>(step + 1 - first_step) *
                            static_cast<double>(options.steps - step - 1);
        std::cerr << "step " << step + 1 << "/" << options.steps << "  loss " << losses.back() << "  floor " << floor
                  << "  " << static_cast<std::int64_t>(rate) << " tokens/s  " << static_cast<std::int64_t>(left)
                  << " s left\n";
      }
    } catch (c10::Error& error) {
      error.add_context(c10::str("in step ", step + 1, " of ", options.steps));
      throw;
    } catch (const std::exception& error) {
      TORCH_CHECK(false, "in step ", step + 1, " of ", options.steps, ": ", error.what());
    }
  }

  const auto formula = traffic_by_formula(policy, mesh, parameters, root_parameters, options.micro_batches);
  auto per_step = traffic_json(traffic.step(), &formula);
  per_step["gradient_syncs"] = traffic.gradient_syncs();
  nlohmann::ordered_json result = {
      {"parallel_method", train::to_string(policy.method)},
      {"world_size", launch.world_size},
      {"mesh", {{"replicate", mesh.replicate}, {"shard", mesh.shard}}},
      {"parameters", parameters},
      {"steps", progress.step},
      {"losses", losses},
      {"entropy_floor", floor},
      {"uniform_loss", std::log(static_cast<double>(options.vocabulary))},
      {"final_loss", losses.back()},
      {"collectives", traffic_json(*world->traffic)},
      {"sent_per_step", per_step},
      {"torch_version", TORCH_VERSION},
      {"threads", threads},
      {"seconds", seconds_since(start)},
      {"configuration", comparable(options)},
  };
  // The slack below the floor is for the noise of one batch; a loss further down means that the data leaks.
  const bool pass = losses.back() <= kFloorFactor * floor && losses.back() >= 0.9 * floor;
  result["verdict"] = pass ? "pass" : "fail";
  if (speaks) open_for_writing(std::filesystem::path(options.out) / "result.json") << result.dump(1) << '\n';
  world->world.barrier();
  return result;
}

}  // namespace sealift::trainer
