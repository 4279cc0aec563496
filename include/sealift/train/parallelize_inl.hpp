// SPDX-License-Identifier: Apache-2.0
// The bodies of parallelize.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/parallelize.hpp>

namespace sealift::train {

namespace detail {

/// Where numbers about the model are compared: where it will live, or on the rank's device if it has no parameters.
SEALIFT_BODY at::Device device_of(const std::vector<UnitPlan>& plans, const Groups& groups) {
  for (const auto& plan : plans) {
    if (!plan.parameters.empty()) return device_of_values(device_for(plan.parameters.front().tensor, groups));
  }
  return device_of_values(groups.device);
}

/// Throws on every rank unless all ranks will make the same flats; a later mismatch would hang or abort.
SEALIFT_BODY void check_agreement(const std::vector<UnitPlan>& plans, Groups& groups) {
  std::int64_t numel = 0;
  std::size_t hash = 0;
  for (const auto& plan : plans) {
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      const auto& [name, tensor] = plan.parameters[i];
      numel += tensor.numel();
      std::ostringstream text;
      text << plan.path << '/' << name << tensor.sizes() << tensor.scalar_type() << tensor.requires_grad()
           << plan.replicate << plan.replicate_trained << static_cast<int>(plan.stored_as(i));
      hash = c10::hash_combine(hash, std::hash<std::string>{}(text.str()));
    }
  }
  const auto mine = torch::tensor({numel, static_cast<std::int64_t>(hash)}, torch::kInt64).to(device_of(plans, groups));
  auto all = mine.repeat({groups.world.size()});
  groups.world.all_gather(all, mine, "model").wait();
  for (std::int64_t rank = 0; rank < groups.world.size(); ++rank) {
    const auto theirs = all.narrow(0, 2 * rank, 2);
    TORCH_CHECK(theirs.equal(mine), "rank ", rank, " has a model of ", theirs[0].item<std::int64_t>(),
                " parameters, rank ", groups.world.rank(), " one of ", numel,
                ", or their names, shapes, dtypes or units differ; build the same model on every rank");
  }
}

/// Throws unless `policy` is possible with `groups`, on a model that was not parallelized before.
SEALIFT_BODY void check_policy(const torch::nn::Module& model, const std::vector<UnitPlan>& plans, const Groups& groups,
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
  const auto& compression = policy.compression;
  TORCH_CHECK(compression.gradients != GradientCompression::PowerSgd || groups.mesh.shard == 1,
              "PowerSGD with parallel_method ", to_string(policy.method), " over ", groups.mesh.shard,
              " ranks that shard: no rank has a whole matrix of gradients to factor; use ddp, or Fp16 or Bf16");
  TORCH_CHECK(compression.gather == GatherCompression::None || policy.method != ParallelMethod::Ddp,
              "compression of a gather with parallel_method ddp, which gathers nothing; leave it out, or use fsdp");
}

SEALIFT_BODY std::vector<std::vector<NamedTensor>> split_into_flats(const std::vector<NamedTensor>& parameters) {
  std::map<std::pair<at::ScalarType, bool>, std::vector<NamedTensor>> flats;
  for (const auto& parameter : parameters) {
    flats[{parameter.tensor.scalar_type(), parameter.tensor.requires_grad()}].push_back(parameter);
  }
  std::vector<std::vector<NamedTensor>> result;
  for (auto& [key, flat] : flats) result.push_back(std::move(flat));
  return result;
}

/// `shard`, which holds the elements of `parameter` from `first` on, as `Parallel` lists it.
SEALIFT_BODY ShardedParameter held_part(const NamedTensor& parameter, std::int64_t first, const at::Tensor& shard,
                                        const Collectives& copies, bool replicated, const Split& split) {
  ShardedParameter part{.name = parameter.name,
                        .sizes = parameter.tensor.sizes().vec(),
                        .offset = first,
                        .shard = shard,
                        .replicated = replicated,
                        .copies = copies.size(),
                        .copy = copies.rank()};
  if (const auto whole = split.wholes.find(parameter.name); whole != split.wholes.end()) {
    part.sizes = whole->second.sizes;
    part.offset += whole->second.first;
    part.replicated = false;
  }
  return part;
}

/// Which ranks a parameter is spread over.
enum class Over { All, None, Axis };

/// The parameters of one unit by how they are held: over which ranks, and what is kept of them.
using UnitParts = std::map<std::pair<Over, StoredAs>, std::vector<NamedTensor>>;

SEALIFT_BODY UnitParts parts_of(const UnitPlan& plan, const Split& split) {
  UnitParts parts;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const auto& parameter = plan.parameters[i];
    const bool everywhere = plan.replicate || (plan.replicate_trained && parameter.tensor.requires_grad());
    const auto over = split.contains(parameter.name) ? Over::Axis : everywhere ? Over::None : Over::All;
    parts[{over, plan.stored_as(i)}].push_back(parameter);
  }
  return parts;
}

/// Turns `parameters` of one unit into flats over `groups` and their gradients, and adds what this rank holds of them
/// to `held`.
SEALIFT_BODY void shard_unit(Session& session, const std::shared_ptr<Unit>& unit, const UnitPlan& plan,
                             const std::vector<NamedTensor>& parameters, StoredAs stored, const Groups& groups,
                             const Split& split, std::vector<ShardedParameter>& held, Source* source) {
  const auto& policy = session.policy;
  const auto& precision = plan.options.precision;
  const bool divides =
      groups.mesh.shard > 1 && plan.options.reshard_group > 0 && groups.mesh.shard % plan.options.reshard_group == 0;
  for (auto& members : split_into_flats(parameters)) {
    const bool floating = members.front().tensor.is_floating_point();
    auto flat = std::make_unique<FlatParam>(
        members, groups,
        FlatParam::Options{
            .unit = unit->label(),
            .label = unit->label() + (unit->flats().empty() ? "" : "#" + std::to_string(unit->flats().size() + 1)),
            .compute_dtype = floating ? precision.param_dtype : std::nullopt,
            .on_host = policy.offload.parameters,
            .pin_memory = policy.offload.pin_memory,
            .broadcast = policy.sync_module_states,
            .reshard_group = divides ? plan.options.reshard_group : 0,
            .gather = policy.compression.gather,
            .stored = stored,
            .memory = session.memory},
        source);
    std::vector<GradientSlot> slots;
    for (std::size_t i = 0; i < flat->size(); ++i) {
      const auto& [name, whole] = flat->parameters()[i];
      const auto& leaf = flat->fragments()[i].tensor;
      const auto part = flat->layout().fragment(i, groups.shard.rank());
      slots.push_back({name, whole, leaf});
      const bool replicated = flat->layout().shards == 1;
      held.push_back(held_part(flat->parameters()[i], part.in_parameter, leaf,
                               replicated ? groups.world : groups.replicate, replicated, split));
      held.back().stored = flat->is_stored();
    }
    if (flat->trainable()) {
      const auto computed = precision.param_dtype.value_or(members.front().tensor.scalar_type());
      const auto reduced = precision.reduce_dtype.value_or(members.front().tensor.scalar_type());
      const bool narrower = c10::elementSize(computed) < c10::elementSize(reduced);
      auto gradients =
          std::make_unique<FlatGradient>(slots, flat->layout(), groups,
                                         FlatGradient::Options{.label = unit->label(),
                                                               .reduce_dtype = precision.reduce_dtype,
                                                               .on_host = policy.offload.gradients,
                                                               .always_used = policy.find_unused_parameters,
                                                               .compression = policy.compression.gradients,
                                                               .power_sgd = session.reducer.power_sgd(),
                                                               .memory = session.memory,
                                                               // The root is open from first to last.
                                                               .late = unit->is_root() && narrower});
      unit->listen(slots, session.reducer.add(std::move(gradients)), unit);
    }
    unit->add_flat(std::move(flat));
  }
}

}  // namespace detail

SEALIFT_BODY Parallel parallelize(torch::nn::Module& model, Groups groups, const Policy& policy, Source* source) {
  const auto mesh = make_mesh(policy, groups.mesh.world_size());
  TORCH_CHECK(mesh == groups.mesh, "policy ", to_string(policy.method), " makes a mesh of ", mesh.replicate, "x",
              mesh.shard, " but the groups are ", groups.mesh.replicate, "x", groups.mesh.shard,
              "; make the groups from make_mesh(policy, world_size)");
  const auto plans = plan_units(model, policy);
  groups.observers = std::make_shared<Observers>();  // of this model alone
  auto session = std::make_shared<Session>(policy, groups);
  std::vector<ShardedParameter> held;
  detail::Split split;
  const auto hold_whole = [&](const NamedTensor& parameter, const Collectives& copies) {
    held.push_back(detail::held_part(parameter, 0, parameter.tensor, copies, /*replicated=*/true, split));
  };
  if (policy.method == ParallelMethod::None) {
    detail::check_first_values(model, groups, policy, source);
    for (const auto& plan : plans) {
      const auto stored =
          std::find_if(plan.stored.begin(), plan.stored.end(), [](StoredAs each) { return each != StoredAs::Plain; });
      TORCH_CHECK(stored == plan.stored.end(), "Policy::store with parallel_method none, which keeps the model as it ",
                  "is; use ddp, over one rank too");
      for (const auto& parameter : plan.parameters) hold_whole(parameter, groups.world);
      detail::fill_whole(plan.parameters, false, groups, source, false, "parameters");
    }
    detail::fill_whole(detail::ignored_parameters(model, plans), false, groups, source, false, "ignored parameters");
    detail::fill_whole(detail::named_buffers(model), true, groups, source, false, "buffers");
    return Parallel(std::move(session), std::move(held), {}, {});
  }

  detail::check_policy(model, plans, groups, policy);
  detail::check_agreement(plans, groups);
  const bool from_rank_0 = policy.sync_module_states;
  split = detail::find_split(model, groups);
  const bool waits = detail::check_first_values(model, groups, policy, source);
  detail::cut(split, groups, source, from_rank_0);
  std::optional<detail::SourceOfParts> parts;
  if (source) source = &parts.emplace(*source, split);
  if (!split.modules.empty()) {
    session->holders = split.holders;
    for (const auto& [name, whole] : split.wholes) session->split.insert(name);
  }
  std::vector<std::string> notes;
  if (mesh.shard > 1) {
    auto choice =
        choose_keep_gathered(policy, keep_cost(plans, mesh.shard), groups.world, detail::device_of(plans, groups));
    session->keep_gathered = choice.keep;
    notes.push_back(std::move(choice.reason));
  }
  detail::fill_whole(detail::named_buffers(model), true, groups, source, from_rank_0, "buffers");
  detail::fill_whole(detail::ignored_parameters(model, plans), false, groups, source, waits, "ignored parameters");
  for (const auto& plan : plans) cast_in_place(plan.buffers, plan.options.precision.buffer_dtype);
  if (policy.broadcast_buffers && mesh.shard == 1 && mesh.replicate > 1) session->buffers = model.buffers();

  std::vector<NamedTensor> replicated, parts_held;
  std::vector<GradientSlot> replicated_slots;
  std::vector<std::optional<at::ScalarType>> reduce_dtypes;
  std::vector<Groups> copies;
  for (std::size_t number = 0; number < plans.size(); ++number) {
    const auto& plan = plans[number];
    std::copy_if(plan.parameters.begin(), plan.parameters.end(), std::back_inserter(session->frozen),
                 [](const auto& parameter) { return !parameter.tensor.requires_grad(); });
    session->units.push_back(std::make_unique<Unit>(plan.path, number, session.get(), plan.options));
    // Slots and hooks keep the session, and so all units, alive through a unit.
    std::shared_ptr<Unit> unit(session, session->units.back().get());
    for (const auto& [how, parameters] : detail::parts_of(plan, split)) {
      const auto [where, stored] = how;
      const auto over = where == detail::Over::Axis   ? split.groups
                        : where == detail::Over::None ? groups.replicated()
                                                      : groups;
      const bool in_flat = over.mesh.shard > 1 || plan.options.precision.param_dtype || policy.offload.parameters ||
                           stored != StoredAs::Plain;
      if (in_flat) {
        detail::shard_unit(*session, unit, plan, parameters, stored, over, split, held, source);
        continue;
      }
      for (const auto& parameter : parameters) {  // these stay whole; only their gradients are reduced
        hold_whole(parameter, over.world);
        (where == detail::Over::Axis ? parts_held : replicated).push_back(parameter);
        if (!parameter.tensor.requires_grad()) continue;
        replicated_slots.push_back({parameter.name, parameter.tensor, parameter.tensor});
        reduce_dtypes.push_back(plan.options.precision.reduce_dtype);
        copies.push_back(over.replicated());
      }
    }
    for (auto* slot : plan.slots) {
      slot->unit = unit;
      slot->last_of_unit = slot == plan.slots.back();
    }
  }
  detail::fill_whole(replicated, false, groups, source, from_rank_0, "parameters");
  detail::fill_whole(parts_held, false, groups, source, /*from_rank_0=*/false, "parts");  // rank 0's already
  for (auto* module : split.modules) module->set_group(split.axis, session->silent);
  if (groups.world.size() > 1 && !replicated_slots.empty()) {
    const std::shared_ptr<Unit> root(session, session->units.front().get());
    root->listen(replicated_slots,
                 session->reducer.add_replicated(replicated_slots, std::move(reduce_dtypes), std::move(copies)), root);
  }
  return Parallel(std::move(session), std::move(held),
                  mesh.shard > 1 ? unit_warnings(plans) : std::vector<std::string>{}, std::move(notes));
}

SEALIFT_BODY Parallel parallelize(torch::nn::Module& model, const World& world, const Policy& policy, Source* source) {
  return parallelize(model, make_groups(world, make_mesh(policy, world.size)), policy, source);
}

}  // namespace sealift::train
