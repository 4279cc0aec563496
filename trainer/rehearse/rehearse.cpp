// SPDX-License-Identifier: Apache-2.0
// See rehearse.hpp; read from the bottom: `rehearse` is the story.
// The steps are those of the trainer's loop on a batch whose tokens all count: forward, loss, backward, norm, AdamW.
// The model is built before the room is entered, so that what `parallelize` takes over was never counted.
#include "trainer/rehearse/rehearse.hpp"

#include "trainer/models/moe.hpp"
#include "trainer/objectives/causal.hpp"

#include <set>

namespace sealift::trainer {
namespace {

using Model = train::Shardable<Decoder>;

/// Values that nobody will look at.
class NoValues final : public train::Source {
 public:
  void read(const std::string&, at::IntArrayRef, std::int64_t, at::Tensor) override {}
};

DecoderConfig config_of(const std::filesystem::path& model) {
  if (std::filesystem::is_directory(model)) return read_decoder_config(model);
  constexpr std::uint64_t kMaxBytes = 1 << 20;
  return parse_decoder_config(train::read_text(model, kMaxBytes), model.string());
}

Model build(const RehearsalOptions& options, const DecoderConfig& config) {
  const train::MetaDevice meta;
  return Model(config, DecoderOptions{.recompute = options.recompute, .dtype = options.parameters});
}

void check(const RehearsalOptions& options, const DecoderConfig& config) {
  TORCH_CHECK(options.rows >= 1 && options.tokens >= 1 && options.micro_batches >= 1, "a step of ",
              options.micro_batches, " micro-batches of ", options.rows, " rows of ", options.tokens,
              " tokens; expected at least 1 of each");
  TORCH_CHECK(options.expert_ranks == 1 || config.experts, "expert_ranks is ", options.expert_ranks, " of ",
              options.model.string(), ", which has no experts; leave it out");
}

train::Groups connect(const RehearsalOptions& options, OtherRanks& others) {
  const auto world = others.world(MetaRoom::device());
  auto how = others.group_options();
  if (!options.checks_order) how.order_check = train::OrderCheck::Off;
  auto groups = options.expert_ranks > 1
                    ? train::make_groups(world, options.policy, kExpertAxis, options.expert_ranks, how)
                    : train::make_groups(world, train::make_mesh(options.policy, options.ranks), how);
  others.log().follow(groups.watch);
  return groups;
}

/// `policy` with what the engine would learn from the device: how much memory is free on it.
train::Policy with_budget(train::Policy policy, std::int64_t memory) {
  constexpr auto kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;
  if (policy.memory_budget == 0) policy.memory_budget = memory > 0 ? memory : kUnlimited;
  return policy;
}

std::vector<Rehearsal::Unit> units_before(torch::nn::Module& model, const train::Policy& policy) {
  std::vector<Rehearsal::Unit> units;
  for (const auto& plan : train::plan_units(model, policy)) {
    Rehearsal::Unit unit{.path = plan.path};
    for (const auto& parameter : plan.parameters) unit.parameters += parameter.tensor.numel();
    units.push_back(unit);
  }
  return units;
}

/// Adds what the units' flats take; parameters in none are whole on every rank.
void add_flats(std::vector<Rehearsal::Unit>& units, const train::Parallel& parallel) {
  const auto bytes = [](std::int64_t numel, const at::Tensor& like) {
    return numel * static_cast<std::int64_t>(like.element_size());
  };
  for (std::size_t i = 0; i < parallel.units().size(); ++i) {
    for (const auto& flat : parallel.units()[i]->flats()) {
      units[i].flats += 1;
      units[i].whole_bytes += bytes(flat->layout().padded_numel(), flat->parameters().front().tensor);
      if (!flat->is_stored())
        units[i].shard_bytes += bytes(flat->layout().shard_numel, flat->fragments().front().tensor);
    }
  }
}

std::vector<Rehearsal::Collective> taken(IssuedLog& log) {
  std::vector<Rehearsal::Collective> all;
  for (auto& [group, label, bytes] : log.take()) all.push_back({std::move(group), std::move(label), bytes});
  return all;
}

/// What was sent since `before`, by kind.
std::vector<Rehearsal::Sent> sent_since(const train::TrafficReport& before, const train::TrafficReport& now) {
  std::vector<Rehearsal::Sent> sent;
  for (const auto& [name, kind] : {std::pair{"all_gather", &train::TrafficReport::all_gather},
                                   {"reduce_scatter", &train::TrafficReport::reduce_scatter},
                                   {"all_reduce", &train::TrafficReport::all_reduce},
                                   {"broadcast", &train::TrafficReport::broadcast},
                                   {"all_to_all", &train::TrafficReport::all_to_all}}) {
    const auto calls = (now.*kind).calls - (before.*kind).calls, bytes = (now.*kind).bytes - (before.*kind).bytes;
    if (calls > 0) sent.push_back({name, calls, bytes});
  }
  return sent;
}

std::int64_t order_checks(const train::Groups& groups) {
  std::int64_t sum = 0;
  std::set<std::vector<std::int64_t>> seen;  // groups of the same ranks are one
  for (const auto* group : {&groups.world, &groups.shard, &groups.replicate}) {
    if (seen.insert(group->members()).second) sum += group->order_checks();
  }
  return sum;
}

/// One rank of the job, from its start on.
class RehearsedRank {
 public:
  RehearsedRank(const RehearsalOptions& options, const DecoderConfig& config, Model model, const train::Policy& policy,
                MetaRoom& room, train::Parallel parallel, Rehearsal::Peaks& peaks)
      : options_(options),
        config_(config),
        model_(std::move(model)),
        room_(room),
        parallel_(std::move(parallel)),
        optimizer_(parallel_.shards(), torch::optim::AdamWOptions(1e-4),
                   policy.offload.optimizer_state ? train::Moments::OnHost : train::Moments::WithParameter),
        peaks_(peaks) {}

  void step() {
    for (std::int64_t micro = 0; micro < options_.micro_batches; ++micro) {
      parallel_.set_micro_batch(micro, options_.micro_batches);
      const auto loss = forward();
      raise(peaks_.forward);
      loss.backward();
      raise(peaks_.backward);
    }
    if (options_.max_grad_norm > 0) train::clip_grad_norm_(parallel_, options_.max_grad_norm);
    optimizer_.step();
    raise(peaks_.optimizer);
    optimizer_.zero_grad();
    peaks_.resting = room_.live();
  }

  train::Parallel& parallel() { return parallel_; }

  Rehearsal::Checkpoint checkpoint() {
    Rehearsal::Checkpoint part{.files = options_.ranks};
    const bool frozen = parallel_.named_shards().size() == parallel_.parameters().size();
    for (const auto& parameter : parallel_.parameters()) {
      const auto numel = train::detail::written_range(parameter).second;
      if (numel == 0 || !train::detail::is_saved(parameter, frozen)) continue;
      const auto add = [&](const at::Tensor& tensor) {
        part.tensors += 1;
        part.bytes += numel * static_cast<std::int64_t>(tensor.element_size());
      };
      add(parameter.shard);
      const auto state = train::parameter_state(optimizer_, parameter.shard);
      if (!state) continue;
      for (const auto& [name, tensor] : state->tensors) add(tensor);
    }
    return part;
  }

 private:
  at::Tensor forward() {
    const auto ids = at::empty({options_.rows, options_.tokens}, at::TensorOptions(at::kLong).device(room_.device()));
    const auto [values, router_loss] = model_(TokenBatch{.ids = ids, .labels = at::empty_like(ids)});
    const auto loss = causal_loss(values, ids.numel()).sum * (1.0 / static_cast<double>(ids.numel()));
    const auto coefficient = config_.experts ? config_.experts->loss_coefficient : 0;
    return router_loss.defined() && coefficient > 0 ? loss + router_loss * coefficient : loss;
  }

  void raise(std::int64_t& peak) const { peak = std::max(peak, room_.take_peak()); }

  const RehearsalOptions& options_;
  const DecoderConfig& config_;
  Model model_;
  MetaRoom& room_;
  train::Parallel parallel_;
  train::FusedAdamW optimizer_;
  Rehearsal::Peaks& peaks_;
};

}  // namespace

Rehearsal rehearse(const RehearsalOptions& options) {
  const auto config = config_of(options.model);
  check(options, config);
  auto model = build(options, config);
  auto policy = with_budget(options.policy, options.memory);
  if (options.adapt) options.adapt(*model, policy);
  Rehearsal found{.family = config.family, .ranks = options.ranks, .rank = options.rank};
  for (const auto& parameter : model->parameters()) {
    found.parameters += parameter.numel();
    if (parameter.requires_grad()) found.trainable += parameter.numel();
  }
  found.device = options.imitated == Imitated::Cuda ? "cuda" : "cpu";
  found.units = units_before(*model, policy);

  OtherRanks others(options.rank, options.ranks, options.limits);
  MetaRoom room(options.imitated, options.memory, [&] { return others.log().last(); });
  auto groups = connect(options, others);
  NoValues values;
  auto parallel = train::parallelize(*model, groups, policy, &values);
  found.mesh = groups.world_mesh ? groups.world_mesh->text() : groups.mesh.text();
  if (options.micro_batches > 1) found.notes = parallel.notes();
  for (const auto& warning : parallel.warnings()) found.notes.push_back(warning);
  add_flats(found.units, parallel);
  found.peaks.built = room.take_peak();
  found.start = taken(others.log());
  found.start_sent = sent_since({}, *groups.traffic);
  const auto& asked = others.messages();
  found.messages = {asked.store_requests, asked.awaited_keys, asked.host_peers,
                    asked.host_messages,  asked.host_bytes,   asked.communicators};
  const auto checks_at_start = order_checks(groups);

  RehearsedRank mine(options, config, std::move(model), policy, room, std::move(parallel), found.peaks);
  mine.step();
  found.order_checks_first = order_checks(groups) - checks_at_start;
  others.log().take();
  const auto before = *groups.traffic;
  mine.step();
  found.step = taken(others.log());
  found.step_sent = sent_since(before, *groups.traffic);
  found.order_checks_later = order_checks(groups) - checks_at_start - found.order_checks_first;
  found.checkpoint = mine.checkpoint();
  return found;
}

}  // namespace sealift::trainer
