// SPDX-License-Identifier: Apache-2.0
// One training run of a configuration: on a rank of a world, or, as the reference, all ranks' batches on one process.
// After `model`; `compare` judges what it returns.
// The reference is plain LibTorch in double, with an optimizer over the model's own parameters: nothing of the engine
// is in it. Both run the same loop, so that an odd order of calls is written once.
#pragma once

#include "tests/support/ranks.hpp"
#include "tests/train/property/model.hpp"

#include <ATen/autocast_mode.h>

#include <set>

namespace sealift::test::property {

/// What one rank holds of a parameter or gradient; `values` in double, undefined where there is no gradient.
struct Piece {
  std::string name;
  std::int64_t offset = 0, whole = 0;  ///< elements of the flattened parameter
  at::Tensor values;
};

struct Outcome {
  std::vector<double> losses;                 ///< of each forward and backward, this rank's own
  std::vector<double> evaluations;            ///< of what `eval` computed
  std::vector<double> norms;                  ///< before clipping
  std::vector<std::vector<Piece>> gradients;  ///< per step, before clipping
  std::vector<Piece> parameters;              ///< at the end
  std::vector<Piece> gathered;                ///< the same, as `gather_parameters` shows them
  std::string observed;                       ///< what observers were told wrongly
  std::string still_gathered;                 ///< units that have memory after the last backward
};

inline constexpr std::int64_t kRows = 3;  ///< of a rank's micro-batch

/// What ranks train on.
struct Hardware {
  std::function<at::Device(std::int64_t rank)> device = [](std::int64_t) { return at::Device(at::kCPU); };
  EngineFactory engine = {};  ///< of collectives of tensors there; empty: Gloo
};

/// The policy that `c` asks for.
inline Policy policy_of(const Configuration& c) {
  Policy policy;
  policy.method = parse_parallel_method(c.text(kMethod));
  if (policy.method == ParallelMethod::Hsdp) policy.shard_size = c.number(kShard);
  const auto& strategy = c.text(kWrap);
  const bool counts = strategy.find("group") != std::string::npos || strategy == "one_in_k";
  set_wrapping_strategy(policy, strategy, counts ? c.number(kBlocks) : 0, c.number(kMinNumel));
  policy.reshard_after_forward = c.is(kReshard, "yes");
  policy.reshard_group = c.number(kReshardGroup);
  policy.sync_module_states = c.is(kStart, "rank_0");
  policy.keep_gathered = c.is(kKeep, "auto")     ? KeepGathered::Auto
                         : c.is(kKeep, "always") ? KeepGathered::Always
                                                 : KeepGathered::Never;
  policy.reduce_every_micro_batch = c.is(kReduceEvery, "yes");
  policy.defer_all_reduce = c.is(kDefer, "yes");
  policy.forward_prefetch = c.number(kForwardPrefetch);
  policy.backward_prefetch = c.number(kBackwardPrefetch);
  policy.find_unused_parameters = c.chosen(kFindUnused);
  policy.stable_addresses = c.is(kAddresses, "stable");
  const auto& offload = c.text(kOffload);
  policy.offload.parameters = offload.starts_with("parameters") || offload == "all";
  policy.offload.gradients = offload.ends_with("gradients") || offload == "all";
  policy.offload.optimizer_state = offload == "all";
  const auto& precision = c.text(kPrecision);
  if (precision.starts_with("bf16")) policy.precision.param_dtype = at::kBFloat16;
  if (precision == "bf16_fp32" || precision == "bf16_output") policy.precision.reduce_dtype = at::kFloat;
  if (precision == "bf16_bf16") policy.precision.reduce_dtype = at::kBFloat16;
  if (precision == "bf16_output") policy.precision.output_dtype = at::kFloat;
  if (precision == "fp16_reduce") policy.precision.reduce_dtype = at::kHalf;
  const auto& other = c.text(kOverride);
  const auto first = [&](const char* path, UnitOptions options) {
    policy.wrap = either(by_path(path, std::move(options)), policy.wrap);
  };
  if (other == "replicate") first("block1", {.replicate = true});
  if (other == "keep_whole") first("block*", {.reshard_after_forward = false});
  if (other == "replicate_inner") first("block2.inner", {.replicate = true});
  if (other == "bf16") first("block2*", {.precision = MixedPrecision{at::kBFloat16, at::kFloat}});
  if (c.is(kBuckets, "tiny")) policy.first_bucket_bytes = policy.bucket_bytes = 1;
  if (c.is(kBuckets, "small")) policy.first_bucket_bytes = 100, policy.bucket_bytes = 400;
  return policy;
}

/// Holds the engine to what it tells observers: what begins ends, and each unit has at most one of a kind open.
class PairsObserver : public Observer {
 public:
  void begin(Activity activity, const std::string& unit) override {
    if (!open_.emplace(activity, unit).second) fault_ += " began twice: " + text(activity, unit) + ";";
  }
  void end(Activity activity, const std::string& unit) override {
    if (open_.erase({activity, unit}) == 0) fault_ += " ended without a begin: " + text(activity, unit) + ";";
  }
  /// What was wrong up to now, when nothing should be open.
  std::string fault() const {
    auto result = fault_;
    for (const auto& [activity, unit] : open_) result += " never ended: " + text(activity, unit) + ";";
    return result;
  }

 private:
  static std::string text(Activity activity, const std::string& unit) {
    static constexpr const char* kNames[] = {"gather", "gather wait", "reduce", "reduce wait", "forward", "backward"};
    return std::string(kNames[static_cast<int>(activity)]) + " of '" + unit + "'";
  }
  std::set<std::pair<Activity, std::string>> open_;
  std::string fault_;
};

class Training {
 public:
  /// On `ranks` of the world that `c` describes: one, or all for the reference, which has no `parallel`.
  Training(const Configuration& c, std::vector<std::int64_t> ranks, Shardable<Net> net, Parallel* parallel,
           at::ScalarType dtype = at::kFloat, at::Device device = at::kCPU)
      : c_(c), ranks_(std::move(ranks)), net_(std::move(net)), parallel_(parallel), dtype_(dtype), device_(device) {}

  Outcome run() {
    const auto optimizer = make_optimizer();
    const auto steps = c_.number(kSteps), micro_batches = c_.number(kMicroBatches);
    at::Tensor kept;  // a graph that is never run backward
    for (std::int64_t step = 0; step < steps; ++step) {
      const bool odd = step % 2 == 1;
      const auto zero_grad = [&] {
        const bool to_none = c_.is(kZeroGrad, "to_none");
        c_.is(kZeroGradOf, "model") ? net_->zero_grad(to_none) : optimizer->zero_grad(to_none);
      };
      zero_grad();
      if (odd) evaluate("before_forward", kept);
      if (odd && c_.chosen(kException)) fail_and_reset(step);
      if (odd && c_.is(kException, "backward")) zero_grad();  // units that were done have theirs
      const auto end = odd && c_.chosen(kCutShort) ? micro_batches - 1 : micro_batches;
      std::vector<at::Tensor> waiting;
      for (std::int64_t micro = 0; micro < end; ++micro) {
        schedule(micro, micro_batches);
        count(micro == 0);
        for (const auto rank : ranks_) waiting.push_back(loss(step, micro, rank));
        // One forward ahead of the backward passes, as in a pipeline.
        const auto ahead = c_.is(kSchedule, "interleaved") && parallel_ && micro + 1 < end ? 1u : 0u;
        while (waiting.size() > ahead) {
          if (micro + 1 == end) last_backward(end == micro_batches && waiting.size() == 1);
          waiting.front().backward();
          waiting.erase(waiting.begin());
        }
        if (odd && micro == 0 && micro_batches > 1) evaluate("between_micro_batches", kept);
      }
      if (end < micro_batches) continue;  // the data has ended: these gradients are dropped
      if (step + 1 == steps) note_gathered();
      if (odd) evaluate("before_step", kept);
      outcome_.gradients.push_back(pieces(/*gradients=*/true));
      if (c_.chosen(kClip)) clip();
      optimizer->step();
      if (odd) evaluate("after_step", kept);
    }
    outcome_.parameters = pieces(/*gradients=*/false);
    if (parallel_) {
      const auto whole = parallel_->gather_parameters();
      for (const auto& item : net_->named_parameters()) outcome_.gathered.push_back(piece(item.key(), item.value()));
    } else {
      outcome_.gathered = outcome_.parameters;
    }
    return outcome_;
  }

 private:
  std::unique_ptr<torch::optim::Optimizer> make_optimizer() const {
    std::vector<at::Tensor> tensors;
    if (parallel_) tensors = parallel_->shards();
    if (!parallel_) {
      for (const auto& parameter : net_->parameters()) {
        if (parameter.requires_grad()) tensors.push_back(parameter);
      }
    }
    // A large eps: a gradient near zero would make its step a matter of rounding.
    const auto adamw = torch::optim::AdamWOptions(0.02).weight_decay(0.1).eps(0.01);
    if (c_.is(kOptimizer, "sgd")) {
      return std::make_unique<torch::optim::SGD>(tensors, torch::optim::SGDOptions(0.2).momentum(0.8));
    }
    if (c_.is(kOptimizer, "adamw") || !parallel_) return std::make_unique<torch::optim::AdamW>(tensors, adamw);
    return std::make_unique<FusedAdamW>(
        tensors, adamw, parallel_->policy().offload.optimizer_state ? Moments::OnHost : Moments::WithParameter);
  }

  /// What a loop says to the core before micro-batch `micro`.
  void schedule(std::int64_t micro, std::int64_t micro_batches) {
    if (!parallel_) return;
    const bool last = micro + 1 == micro_batches;
    const auto& how = c_.text(kSchedule);
    if (how == "set_micro_batch") parallel_->set_micro_batch(micro, micro_batches);
    if (how == "sync_last" || how == "sync_and_reshard_last") parallel_->set_requires_gradient_sync(last);
    if (how == "sync_and_reshard_last") parallel_->set_reshard_after_backward(last);
    if (how == "all_reduce_last") parallel_->set_requires_all_reduce(last);
    if (how == "interleaved" && micro == 0) {
      parallel_->set_requires_gradient_sync(false);
      parallel_->set_reshard_after_backward(false);
    }
  }

  void last_backward(bool last) {
    if (!parallel_ || !c_.is(kSchedule, "interleaved") || !last) return;
    parallel_->set_requires_gradient_sync(true);
    parallel_->set_reshard_after_backward(true);
  }

  /// A buffer that changes with every micro-batch. Under ddp rank 0's counts, so the others' may be wrong before.
  void count(bool first) {
    if (!c_.chosen(kBuffers)) return;
    at::NoGradGuard no_grad;
    net_->count.add_(0.25);
    // After a cut that only zero_grad() tells of, the core takes the next forward for one of the same step, as DDP
    // does.
    const bool told = !c_.chosen(kCutShort) || c_.is(kSchedule, "set_micro_batch");
    if (first && told && parallel_ && c_.is(kMethod, "ddp")) {
      if (const auto rank = ranks_.front(); rank > 0) net_->count.add_(static_cast<double>(rank));
    }
  }

  std::vector<std::size_t> path(std::int64_t step, std::int64_t micro, std::int64_t rank) const {
    std::vector<std::size_t> blocks{0, 1, 2, 3};
    const bool odd = step % 2 == 1;
    if (c_.is(kOrder, "changes") && odd) blocks = {2, 0, 3, 1};
    const auto without = [&](std::size_t block) { std::erase(blocks, block); };
    if (c_.is(kUnused, "by_step") && odd) without(1), without(3);
    if (c_.is(kUnused, "by_micro_batch") && micro == 1) without(2);
    // Only where neither a block's forward nor the end of its backward is a collective.
    const bool flats = c_.chosen(kPrecision) || c_.chosen(kOffload) || c_.is(kOverride, "bf16");
    if (c_.is(kUnused, "by_rank") && c_.is(kMethod, "ddp") && !flats) without(static_cast<std::size_t>(rank));
    if (c_.chosen(kRepeat)) blocks.insert(blocks.end(), blocks.begin(), blocks.begin() + 2);
    return blocks;
  }

  /// The mean over the rows of one forward.
  at::Tensor forward(std::int64_t batch, const std::vector<std::size_t>& path) {
    const auto ids = ((torch::arange(kRows) * (3 + batch % 2) + batch) % kVocabulary).to(device_);
    const auto targets = (ids * 3 + 1 + c_.number(kData)) % kVocabulary;
    const bool autocast = c_.chosen(kAutocast) && parallel_;
    const auto kind = device_.type();
    const bool before = at::autocast::is_autocast_enabled(kind);
    at::autocast::set_autocast_enabled(kind, autocast);
    at::autocast::set_autocast_dtype(kind, at::kBFloat16);  // of PrivateUse1 it is fp16 else
    auto [logits, side] = net_(ids, path);
    at::autocast::set_autocast_enabled(kind, before);
    if (autocast) at::autocast::clear_cache();
    const auto dtype = parallel_ ? at::kFloat : at::kDouble;
    auto result = torch::nn::functional::cross_entropy(logits.to(dtype), targets);
    if (c_.is(kSide, "used")) result = result + 0.1 * side.to(dtype);
    return result;
  }

  /// The loss of a rank's micro-batch, divided so that the sums of all gradients are those of the whole batch.
  at::Tensor loss(std::int64_t step, std::int64_t micro, std::int64_t rank) {
    const auto micro_batches = c_.number(kMicroBatches), size = c_.number(kRanks);
    for (std::size_t i = 0; i < net_->blocks.size(); ++i) {
      net_->blocks[i]->uses_extra = !c_.is(kUnused, "by_rank") || (rank + step + static_cast<std::int64_t>(i)) % 2 == 0;
      if (c_.chosen(kAutocast) && parallel_) net_->blocks[i]->computes_in = at::kBFloat16;
    }
    const auto batch = c_.number(kData) + (step * micro_batches + micro) * size + rank;
    const auto blocks = path(step, micro, rank);
    auto sum = forward(batch, blocks);
    if (c_.is(kForwards, "2")) sum = sum - 0.3 * forward(batch + 2, blocks);
    if (c_.chosen(kRegularizer)) sum = sum + 0.05 * net_->gain.square();
    outcome_.losses.push_back(sum.item<double>());
    // A divisor of the user's is in place of the world size.
    const double half = c_.chosen(kDivideBy) && !parallel_ ? 2 : 1;
    return sum / (half * static_cast<double>(micro_batches * (parallel_ ? 1 : size)));
  }

  /// An evaluation where `c` wants one: computes something that must come out as in the reference, and leaves no trace.
  void evaluate(const std::string& at, at::Tensor& kept) {
    if (!c_.chosen(kEval) || !c_.is(kEvalAt, at)) return;
    const auto& what = c_.text(kEval);
    const std::vector<std::size_t> all{0, 1, 2, 3};
    const auto note = [&](const at::Tensor& value) { outcome_.evaluations.push_back(value.item<double>()); };
    for (auto* block : net_->blocks) {
      block->uses_extra = true;
      if (what.starts_with("block") || what == "read") block->computes_in = {};
    }
    const auto was_training = net_->is_training();
    if (what == "no_grad" || what == "gathered") {
      at::NoGradGuard no_grad;
      net_->eval();
      if (what == "gathered" && parallel_) {
        const auto whole = parallel_->gather_parameters();
        note(forward(5, all));
        note(sum_of_parameters());  // still whole
      } else {
        note(forward(5, all));
        if (what == "gathered") note(sum_of_parameters());
      }
    } else if (what.starts_with("recorded")) {
      net_->eval();  // or rank 0's buffers would be broadcast
      const auto result = forward(5, all);
      note(result);
      if (what == "recorded_kept") kept = result;
    } else if (what == "read") {
      at::NoGradGuard no_grad;
      if (parallel_) {
        const auto whole = parallel_->gather_parameters();
        note(sum_of_parameters());
      } else {
        note(sum_of_parameters());
      }
    } else if (what == "method") {
      const auto x = torch::ones({2, kWidth}, torch::dtype(dtype_).device(device_));
      note(net_->call_gathered(&NetImpl::scaled, x).sum());
    } else if (can_call_blocks()) {
      at::AutoGradMode grad(what == "block_recorded");
      const auto x = torch::sin(torch::arange(kRows * kWidth, dtype_).view({kRows, kWidth})).to(device_);
      const auto result = net_->call_block(0, x.clone(), x).first;
      if (what == "block_recorded") kept = result;
      note(result.square().sum());
    }
    if (was_training) net_->train();
  }

  at::Tensor sum_of_parameters() const {
    auto sum = torch::zeros({}, torch::dtype(torch::kDouble).device(device_));
    for (const auto& parameter : net_->parameters()) sum += parameter.detach().to(torch::kDouble).abs().sum();
    return sum;
  }

  /// A block inside a unit has no call of its own that could gather it.
  bool can_call_blocks() const {
    if (!parallel_) return true;
    const auto& units = parallel_->units();
    return net_->slots[0]->unit || (!units.empty() && units.front()->flats().empty());
  }

  /// A step that fails in its first forward or backward on every rank; a rank may leave one block out, so two of them
  /// fail.
  void fail_and_reset(std::int64_t step) {
    if (!parallel_) return;
    schedule(0, c_.number(kMicroBatches));
    const bool in_backward = c_.is(kException, "backward");
    const auto fail = [&](bool fails) {
      for (const auto block : {2, 3}) {
        (in_backward ? net_->blocks[block]->fails_in_backward : net_->blocks[block]->fails) = fails;
      }
    };
    fail(true);
    const auto noted = outcome_.losses.size();
    try {
      for (const auto rank : ranks_) {
        auto sum = loss(step, 0, rank);
        if (in_backward) sum.backward();
      }
    } catch (const std::runtime_error&) {
    }
    fail(false);
    outcome_.losses.resize(noted);
    at::autocast::set_autocast_enabled(device_.type(), false);
    parallel_->reset();
  }

  void clip() {
    constexpr double kMost = 0.1;
    if (parallel_) {
      outcome_.norms.push_back(clip_grad_norm_(*parallel_, kMost).item<double>());
    } else {
      outcome_.norms.push_back(torch::nn::utils::clip_grad_norm_(net_->parameters(), kMost));
    }
  }

  void note_gathered() {
    if (!parallel_) return;
    for (const auto& unit : parallel_->units()) {
      for (const auto& flat : unit->flats()) {
        if (flat->residence() != Residence::Sharded) outcome_.still_gathered += " '" + unit->path() + "'";
      }
    }
  }

  static Piece piece(const std::string& name, const at::Tensor& tensor) {
    return {name, 0, tensor.numel(), tensor.detach().cpu().to(torch::kDouble, false, /*copy=*/true).flatten()};
  }

  /// What this rank holds of the trainable parameters, or of their gradients.
  std::vector<Piece> pieces(bool gradients) const {
    std::vector<Piece> result;
    const auto add = [&](const std::string& name, std::int64_t offset, std::int64_t whole, const at::Tensor& leaf) {
      const auto& tensor = gradients ? leaf.grad() : leaf;
      if (leaf.numel() == 0) return;
      result.push_back({name, offset, whole, {}});
      if (tensor.defined()) result.back().values = piece(name, tensor).values;
    };
    if (parallel_) {
      for (const auto& held : parallel_->parameters()) {
        add(held.name, held.offset, c10::multiply_integers(held.sizes), held.shard);
      }
    } else {
      for (const auto& item : net_->named_parameters()) add(item.key(), 0, item.value().numel(), item.value());
    }
    return result;
  }

  Configuration c_;
  std::vector<std::int64_t> ranks_;
  Shardable<Net> net_;
  Parallel* parallel_;
  at::ScalarType dtype_;  ///< of what goes into blocks from outside
  at::Device device_;     ///< ... and where it lives
  Outcome outcome_;
};

/// All ranks' batches on one process; in a narrower dtype it shows what rounding alone does.
inline Outcome train_reference(const Configuration& c, at::ScalarType dtype = at::kDouble) {
  auto net = make_net(c, /*reference=*/true);
  net->to(dtype);
  prepare(*net, c, 0.1 * static_cast<double>(c.number(kData)));
  std::vector<std::int64_t> ranks;
  for (std::int64_t rank = 0; rank < c.number(kRanks); ++rank) ranks.push_back(rank);
  return Training(c, ranks, net, nullptr, dtype).run();
}

/// A rank's share. `accepted` is set when the policy was.
inline Outcome train_rank(const Configuration& c, World world, const Hardware& hardware, bool& accepted) {
  const auto policy = policy_of(c);
  world.device = hardware.device(world.rank);
  auto groups = make_groups(world, make_mesh(policy, world.size), {.device_engine = hardware.engine});
  try {
    auto net = make_net(c, /*reference=*/false);
    const double other = c.is(kStart, "rank_0") ? static_cast<double>(world.rank) : 0;
    prepare(*net, c, 0.1 * static_cast<double>(c.number(kData)) + other);
    net->to(world.device);
    auto parallel = parallelize(*net, groups, policy);
    accepted = true;
    const auto observer = std::make_shared<PairsObserver>();
    parallel.observe(observer);
    if (c.chosen(kDivideBy)) parallel.set_gradient_divide_factor(2.0 * static_cast<double>(world.size));
    auto outcome = Training(c, {world.rank}, net, &parallel, at::kFloat, world.device).run();
    outcome.observed = observer->fault();
    return outcome;
  } catch (const std::exception& error) {
    groups.report_failure(error.what());
    throw;
  }
}

}  // namespace sealift::test::property
