// SPDX-License-Identifier: Apache-2.0
// The verb: spreads a model over the ranks of a mesh and hands back what its optimizer must step.
// Order: find the units -> check that all ranks agree -> turn each unit's parameters into flats -> fill the slots.
// Everything is checked before the first parameter is touched, so an error leaves the model as it was.
#pragma once

#include <sealift/train/shardable.hpp>

#include <map>
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
  Parallel(std::shared_ptr<Session> session, std::vector<ShardedParameter> parameters)
      : session_(std::move(session)), parameters_(std::move(parameters)) {
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

  /// With false, backward collects gradients on this rank only; the next synced backward reduces their sum once.
  void set_requires_gradient_sync(bool sync) { session_->requires_gradient_sync = sync; }

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
      for (auto& unit : session_->units) {
        for (auto& flat : unit->flats()) flat->reshard();
      }
    }

   private:
    std::shared_ptr<Session> session_;
  };
  Whole gather_parameters() { return Whole(session_); }

  Groups& groups() { return session_->groups; }
  const std::vector<std::unique_ptr<Unit>>& units() const { return session_->units; }

 private:
  std::shared_ptr<Session> session_;
  std::vector<ShardedParameter> parameters_;
  std::vector<NamedTensor> shards_;
};

namespace detail {

/// A unit before its parameters become flats.
struct UnitPlan {
  std::string path;  ///< empty for the root
  UnitSlot* slot = nullptr;
  std::vector<NamedTensor> parameters;
};

/// Adds the parameters of `module` and below to the innermost unit that holds them; a tie counts once.
inline void plan_units(torch::nn::Module& module, const std::string& path, std::size_t unit, const Policy& policy,
                       std::map<at::TensorImpl*, std::pair<std::string, std::size_t>>& seen,
                       std::vector<UnitPlan>& plans) {
  const auto join = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    const auto [first, is_new] = seen.try_emplace(item.value().unsafeGetTensorImpl(), join(item.key()), unit);
    if (is_new) plans[unit].parameters.push_back({join(item.key()), item.value()});
    TORCH_CHECK(first->second.second == unit, "parameters '", first->second.first, "' and '", join(item.key()),
                "' are tied but lie in units '", plans[first->second.second].path, "' and '", plans[unit].path,
                "'; hold tied parameters in one unit, best the root");
  }
  for (const auto& item : module.named_children()) {
    auto* slot = dynamic_cast<UnitSlot*>(item.value().get());
    auto child_unit = unit;
    if (slot && policy.wrap == Wrap::ByBlock) {
      const auto known = std::find_if(plans.begin(), plans.end(), [&](const auto& plan) { return plan.slot == slot; });
      child_unit = static_cast<std::size_t>(known - plans.begin());
      if (known == plans.end()) plans.push_back({join(item.key()), slot, {}});
    }
    plan_units(*item.value(), join(item.key()), child_unit, policy, seen, plans);
  }
}

/// Throws on every rank unless all ranks are about to make the same flats; a mismatch later would hang or abort.
inline void check_agreement(const std::vector<UnitPlan>& plans, Groups& groups) {
  std::int64_t numel = 0;
  std::size_t hash = 0;
  for (const auto& plan : plans) {
    for (const auto& [name, tensor] : plan.parameters) {
      numel += tensor.numel();
      std::ostringstream text;
      text << plan.path << name << tensor.sizes() << tensor.scalar_type() << tensor.requires_grad();
      hash = c10::hash_combine(hash, std::hash<std::string>{}(text.str()));
    }
  }
  const auto mine = torch::tensor({numel, static_cast<std::int64_t>(hash)}, torch::kInt64);
  auto all = mine.repeat({groups.world.size()});
  groups.world.all_gather(all, mine).wait();
  for (std::int64_t rank = 0; rank < groups.world.size(); ++rank) {
    const auto theirs = all.narrow(0, 2 * rank, 2);
    TORCH_CHECK(theirs.equal(mine), "rank ", rank, " has a model of ", theirs[0].item<std::int64_t>(),
                " parameters, rank ", groups.world.rank(), " one of ", numel,
                ", or their names, shapes or dtypes differ; build the same model on every rank");
  }
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

}  // namespace detail

/// Spreads `model`, which must be held in `Shardable`, over `groups`. With `ParallelMethod::None` nothing is done to
/// it. Parameters keep their identity but are whole only while they are used. Collective.
inline Parallel parallelize(torch::nn::Module& model, Groups groups, const Policy& policy) {
  const auto mesh = make_mesh(policy, groups.mesh.world_size());
  TORCH_CHECK(mesh == groups.mesh, "policy ", to_string(policy.method), " makes a mesh of ", mesh.replicate, "x",
              mesh.shard, " but the groups are ", groups.mesh.replicate, "x", groups.mesh.shard,
              "; make the groups from make_mesh(policy, world_size)");
  auto session = std::make_shared<Session>(Session{.policy = policy, .groups = groups});
  std::vector<detail::UnitPlan> plans{{"", dynamic_cast<UnitSlot*>(&model), {}}};
  std::map<at::TensorImpl*, std::pair<std::string, std::size_t>> seen;
  detail::plan_units(model, "", 0, policy, seen, plans);

  if (policy.method == ParallelMethod::None) {
    std::vector<ShardedParameter> parameters;
    for (const auto& plan : plans) {
      for (const auto& [name, tensor] : plan.parameters) {
        parameters.push_back({name, tensor.sizes().vec(), 0, tensor, /*replicated=*/true});
      }
    }
    return Parallel(std::move(session), std::move(parameters));
  }

  TORCH_CHECK(plans.front().slot, "the model is a plain ", model.name(), "; hold it in Shardable<", model.name(),
              "> so that its forward can gather its parameters");
  for (const auto& plan : plans) {
    TORCH_CHECK(!plan.slot->unit, "unit '", plan.path, "' was parallelized before; build a new model instead");
  }
  detail::check_agreement(plans, groups);
  if (policy.sync_module_states) {
    for (auto& buffer : model.buffers()) groups.world.broadcast(buffer).wait();
  }

  std::vector<ShardedParameter> parameters;
  for (const auto& plan : plans) {
    session->units.push_back(std::make_unique<Unit>(plan.path, plan.slot == plans.front().slot, session.get()));
    // Slots and hooks keep the session, and so all units, alive through a unit.
    std::shared_ptr<Unit> unit(session, session->units.back().get());
    for (auto& flat : detail::split_into_flats(plan.parameters)) unit->add_flat(std::move(flat), unit);
    for (const auto& flat : unit->flats()) {
      for (std::size_t i = 0; i < flat->size(); ++i) {
        const auto& [name, whole] = flat->parameters()[i];
        const auto part = flat->layout().fragment(i, groups.shard.rank());
        parameters.push_back({name, whole.sizes().vec(), part.in_parameter, flat->fragments()[i].tensor,
                              /*replicated=*/flat->layout().shards == 1});
      }
    }
    plan.slot->unit = std::move(unit);
  }
  return Parallel(std::move(session), std::move(parameters));
}

}  // namespace sealift::train
