// SPDX-License-Identifier: Apache-2.0
// The verb: spreads a model over the ranks of a mesh and hands back what its optimizer must step.
// Order: plan the units -> check that all ranks agree -> turn each unit's parameters into flats -> fill the slots.
// Everything is checked before the first parameter is touched, so an error leaves the model as it was.
#pragma once

#include <sealift/train/unit_plan.hpp>

#include <unordered_set>

namespace sealift::train {

/// One parameter of the model, trainable or frozen, as this rank holds it.
struct ShardedParameter {
  std::string name;
  std::vector<std::int64_t> sizes;  ///< of the whole parameter
  std::int64_t offset = 0;          ///< of this rank's first element in the flattened parameter
  at::Tensor shard;                 ///< this rank's elements; empty when it holds none
  bool replicated = false;          ///< every rank holds all of it, so one of them speaks for all
};

/// A model that was spread over ranks. Move-only; the model stays parallel when this goes.
class Parallel {
 public:
  Parallel(std::shared_ptr<Session> session, std::vector<ShardedParameter> parameters,
           std::vector<std::string> warnings)
      : session_(std::move(session)), parameters_(std::move(parameters)), warnings_(std::move(warnings)) {
    for (const auto& parameter : parameters_) {
      if (parameter.shard.requires_grad()) shards_.push_back({parameter.name, parameter.shard});
    }
  }
  Parallel(Parallel&&) = default;
  Parallel& operator=(Parallel&&) = default;

  /// Every parameter of the model, in the order of its units; the same order and names on all ranks.
  const std::vector<ShardedParameter>& parameters() const { return parameters_; }

  /// The trainable parameters as this rank holds them, by name: make weight-decay groups from these.
  const std::vector<NamedTensor>& named_shards() const { return shards_; }

  /// The same without names: what an optimizer steps.
  std::vector<at::Tensor> shards() const {
    std::vector<at::Tensor> tensors;
    for (const auto& shard : shards_) tensors.push_back(shard.tensor);
    return tensors;
  }

  /// Throws unless `optimizer` steps the shards: one made before `parallelize` would silently train nothing.
  void check_optimizer(torch::optim::Optimizer& optimizer) const {
    std::unordered_set<at::TensorImpl*> known;
    for (const auto& shard : shards_) known.insert(shard.tensor.unsafeGetTensorImpl());
    for (auto& group : optimizer.param_groups()) {
      for (const auto& tensor : group.params()) {
        TORCH_CHECK(known.contains(tensor.unsafeGetTensorImpl()), "the optimizer steps a tensor of shape ",
                    tensor.sizes(), " that is not one of this model's ", shards_.size(),
                    " shards; make the optimizer after parallelize(), from Parallel::shards()");
      }
    }
  }

  /// Call before the forward of micro-batch `micro` of `micro_batches`: reduces with the last one only and keeps
  /// parameters gathered in between, as far as the policy allows. One gather and one reduction of each unit per step.
  void set_micro_batch(std::int64_t micro, std::int64_t micro_batches) {
    TORCH_CHECK(micro >= 0 && micro < micro_batches, "micro-batch ", micro, " of ", micro_batches,
                "; expected a number from 0 to ", micro_batches - 1);
    const auto& policy = session_->policy;
    const bool last = micro + 1 == micro_batches;
    session_->sync = last || policy.reduce_every_micro_batch;
    session_->sync_copies = last || !policy.defer_all_reduce;
    session_->keep_after_forward = policy.keep_gathered && micro_batches > 1;
    session_->keep_after_backward = policy.keep_gathered && !last;
    session_->continues = micro > 0;
  }

  // FSDP2's setters, for loops that set_micro_batch does not fit.

  /// With false, backward collects gradients on this rank only; the next synced backward reduces their sum once.
  void set_requires_gradient_sync(bool sync) { session_->sync = sync; }

  /// hsdp: with false, gradients are summed over the shard group only; the next reduction with true sums over the
  /// copies.
  void set_requires_all_reduce(bool all_reduce) { session_->sync_copies = all_reduce; }

  /// With false, units stay gathered after their backward, for another forward before the optimizer's step.
  void set_reshard_after_backward(bool reshard) { session_->keep_after_backward = session_->continues = !reshard; }

  /// Gathers the units at `next` while the one at `path` runs forward, instead of the next in the order of calls.
  void set_forward_prefetch(const std::string& path, const std::vector<std::string>& next) {
    unit(path).set_forward_prefetch(numbers(next));
  }

  /// The same for backward.
  void set_backward_prefetch(const std::string& path, const std::vector<std::string>& next) {
    unit(path).set_backward_prefetch(numbers(next));
  }

  /// Makes gradients that wait in host memory (`Offload::gradients`) those of the shards. Call before clipping and
  /// step.
  void prepare_step() { session_->reducer.hand_over(); }

  /// Forgets a step that an exception cut short: nothing gathered, collected or in flight. Call on all ranks alike.
  void reset() { session_->reset(); }

  /// While it lives, every parameter holds its full values, for reading: evaluation, export. Collective.
  class [[nodiscard]] Whole {
   public:
    explicit Whole(std::shared_ptr<Session> session) : session_(std::move(session)) {
      for (auto& unit : session_->units) {
        for (auto& flat : unit->flats()) flat->unshard();
      }
    }
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;
    ~Whole() {
      for (auto& unit : session_->units) unit->reshard();
    }

   private:
    std::shared_ptr<Session> session_;
  };
  Whole gather_parameters() { return Whole(session_); }

  Groups& groups() { return session_->groups; }
  const Policy& policy() const { return session_->policy; }
  const Reducer& reducer() const { return session_->reducer; }
  const std::vector<std::unique_ptr<Unit>>& units() const { return session_->units; }

  /// What a user may want to change about how the model was cut.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Unit& unit(const std::string& path) {
    for (auto& candidate : session_->units) {
      if (candidate->path() == path) return *candidate;
    }
    TORCH_CHECK(false, "there is no unit '", path, "'; see Parallel::units()");
  }

  std::vector<std::size_t> numbers(const std::vector<std::string>& paths) {
    std::vector<std::size_t> result;
    for (const auto& path : paths) result.push_back(unit(path).number());
    return result;
  }

  std::shared_ptr<Session> session_;
  std::vector<ShardedParameter> parameters_;
  std::vector<NamedTensor> shards_;
  std::vector<std::string> warnings_;
};

namespace detail {

/// Throws on every rank unless all ranks are about to make the same flats; a mismatch later would hang or abort.
inline void check_agreement(const std::vector<UnitPlan>& plans, Groups& groups) {
  std::int64_t numel = 0;
  std::size_t hash = 0;
  for (const auto& plan : plans) {
    for (const auto& [name, tensor] : plan.parameters) {
      numel += tensor.numel();
      std::ostringstream text;
      text << plan.path << '/' << name << tensor.sizes() << tensor.scalar_type() << tensor.requires_grad()
           << plan.replicate;
      hash = c10::hash_combine(hash, std::hash<std::string>{}(text.str()));
    }
  }
  at::Device device = at::kCPU;
  for (const auto& plan : plans) {
    if (!plan.parameters.empty()) device = plan.parameters.front().tensor.device();
  }
  const auto mine = torch::tensor({numel, static_cast<std::int64_t>(hash)}, torch::kInt64).to(device);
  auto all = mine.repeat({groups.world.size()});
  groups.world.all_gather(all, mine, "model").wait();
  for (std::int64_t rank = 0; rank < groups.world.size(); ++rank) {
    const auto theirs = all.narrow(0, 2 * rank, 2);
    TORCH_CHECK(theirs.equal(mine), "rank ", rank, " has a model of ", theirs[0].item<std::int64_t>(),
                " parameters, rank ", groups.world.rank(), " one of ", numel,
                ", or their names, shapes, dtypes or units differ; build the same model on every rank");
  }
}

/// Throws unless `policy` can be carried out with `groups` on a model that was not parallelized before.
inline void check_policy(const torch::nn::Module& model, const std::vector<UnitPlan>& plans, const Groups& groups,
                         const Policy& policy) {
  TORCH_CHECK(plans.front().slots.front(), "the model is a plain ", model.name(), "; hold it in Shardable<",
              model.name(), "> so that its forward can gather its parameters");
  for (const auto& plan : plans) {
    for (const auto* slot : plan.slots) {
      TORCH_CHECK(!slot->unit, "unit '", plan.path, "' was parallelized before; build a new model instead");
    }
  }
  const auto group = policy.reshard_group;
  TORCH_CHECK(group == 0 || (group > 1 && group < groups.mesh.shard && groups.mesh.shard % group == 0),
              "reshard_group is ", group, "; it must lie between 1 and the ", groups.mesh.shard,
              " ranks that shard, and divide them");
}

/// A flat holds one dtype, and frozen and trainable parameters apart, so that frozen ones cost no gradients.
inline std::vector<std::vector<NamedTensor>> split_into_flats(const std::vector<NamedTensor>& parameters) {
  std::map<std::pair<at::ScalarType, bool>, std::vector<NamedTensor>> flats;
  for (const auto& parameter : parameters) {
    flats[{parameter.tensor.scalar_type(), parameter.tensor.requires_grad()}].push_back(parameter);
  }
  std::vector<std::vector<NamedTensor>> result;
  for (auto& [key, flat] : flats) result.push_back(std::move(flat));
  return result;
}

/// Turns the parameters of one unit into flats and their gradients, and says what this rank holds of them.
inline void shard_unit(Session& session, const std::shared_ptr<Unit>& unit, const UnitPlan& plan, const Groups& groups,
                       std::vector<ShardedParameter>& held) {
  const auto& policy = session.policy;
  const auto& precision = plan.options.precision;
  for (auto& members : split_into_flats(plan.parameters)) {
    const bool floating = members.front().tensor.is_floating_point();
    auto flat = std::make_unique<FlatParam>(
        members, groups,
        FlatParam::Options{.unit = plan.path.empty() ? "root" : plan.path,
                           .compute_dtype = floating ? precision.param_dtype : std::nullopt,
                           .on_host = policy.offload.parameters,
                           .pin_memory = policy.offload.pin_memory,
                           .broadcast = policy.sync_module_states,
                           .reshard_group = groups.mesh.shard > 1 ? plan.options.reshard_group : 0});
    std::vector<GradientSlot> slots;
    for (std::size_t i = 0; i < flat->size(); ++i) {
      const auto& [name, whole] = flat->parameters()[i];
      const auto& leaf = flat->fragments()[i].tensor;
      const auto part = flat->layout().fragment(i, groups.shard.rank());
      slots.push_back({name, whole, leaf});
      held.push_back({name, whole.sizes().vec(), part.in_parameter, leaf, /*replicated=*/flat->layout().shards == 1});
    }
    if (flat->trainable()) {
      auto gradients =
          std::make_unique<FlatGradient>(slots, flat->layout(), groups,
                                         FlatGradient::Options{.label = plan.path.empty() ? "root" : plan.path,
                                                               .reduce_dtype = precision.reduce_dtype,
                                                               .on_host = policy.offload.gradients,
                                                               .always_used = policy.find_unused_parameters});
      auto* reduced = gradients.get();
      unit->listen(slots, session.reducer.add(std::move(gradients)), reduced, unit);
    }
    unit->add_flat(std::move(flat));
  }
}

}  // namespace detail

/// Spreads `model`, which must be held in `Shardable`, over `groups`. With `ParallelMethod::None` nothing is done to
/// it. Parameters keep their identity but are whole only while they are used. Collective.
inline Parallel parallelize(torch::nn::Module& model, Groups groups, const Policy& policy) {
  const auto mesh = make_mesh(policy, groups.mesh.world_size());
  TORCH_CHECK(mesh == groups.mesh, "policy ", to_string(policy.method), " makes a mesh of ", mesh.replicate, "x",
              mesh.shard, " but the groups are ", groups.mesh.replicate, "x", groups.mesh.shard,
              "; make the groups from make_mesh(policy, world_size)");
  const auto plans = plan_units(model, policy);
  auto session = std::make_shared<Session>(policy, groups);
  std::vector<ShardedParameter> held;
  const auto hold_whole = [&](const NamedTensor& parameter) {
    held.push_back({parameter.name, parameter.tensor.sizes().vec(), 0, parameter.tensor, /*replicated=*/true});
  };
  if (policy.method == ParallelMethod::None) {
    for (const auto& plan : plans) std::for_each(plan.parameters.begin(), plan.parameters.end(), hold_whole);
    return Parallel(std::move(session), std::move(held), {});
  }

  detail::check_policy(model, plans, groups, policy);
  detail::check_agreement(plans, groups);
  if (policy.sync_module_states) broadcast_together(groups.world, model.buffers(), "buffers");
  if (policy.broadcast_buffers && mesh.shard == 1 && mesh.replicate > 1) session->buffers = model.buffers();

  std::vector<at::Tensor> replicated;
  std::vector<GradientSlot> replicated_slots;
  std::vector<std::optional<at::ScalarType>> reduce_dtypes;
  for (std::size_t number = 0; number < plans.size(); ++number) {
    const auto& plan = plans[number];
    session->units.push_back(std::make_unique<Unit>(plan.path, number, session.get(), plan.options));
    // Slots and hooks keep the session, and so all units, alive through a unit.
    std::shared_ptr<Unit> unit(session, session->units.back().get());
    const auto unit_groups = plan.replicate ? groups.replicated() : groups;
    if (unit_groups.mesh.shard > 1 || plan.options.precision.param_dtype || policy.offload.parameters) {
      detail::shard_unit(*session, unit, plan, unit_groups, held);
    } else {
      for (const auto& parameter : plan.parameters) {  // these stay as they are; only their gradients travel
        hold_whole(parameter);
        replicated.push_back(parameter.tensor);
        if (!parameter.tensor.requires_grad()) continue;
        replicated_slots.push_back({parameter.name, parameter.tensor, parameter.tensor});
        reduce_dtypes.push_back(plan.options.precision.reduce_dtype);
      }
    }
    // A unit that moves nothing need not see its calls; the root's begin and end a step.
    if (unit->flats().empty() && number > 0) continue;
    for (auto* slot : plan.slots) {
      slot->unit = unit;
      slot->last_of_unit = slot == plan.slots.back();
    }
  }
  if (policy.sync_module_states) broadcast_together(groups.world, replicated, "parameters");
  if (groups.world.size() > 1 && !replicated_slots.empty()) {
    const std::shared_ptr<Unit> root(session, session->units.front().get());
    const auto route = session->reducer.add_replicated(replicated_slots, std::move(reduce_dtypes));
    root->listen(replicated_slots, route, nullptr, root);
  }
  return Parallel(std::move(session), std::move(held),
                  mesh.shard > 1 ? unit_warnings(plans) : std::vector<std::string>{});
}

}  // namespace sealift::train
