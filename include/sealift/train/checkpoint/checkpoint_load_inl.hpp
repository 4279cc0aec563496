// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_load.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/checkpoint/checkpoint_load.hpp>

namespace sealift::train {

namespace detail {

SEALIFT_BODY std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

SEALIFT_BODY void check_same_tensors(const std::map<std::string, StoredTensor>& stored,
                                     const std::map<std::string, StoredTensor>& wanted, const std::string& where) {
  std::vector<std::string> missing, extra, different;
  const auto text = [](const StoredTensor& tensor) {
    return c10::str(tensor.dtype, " ", at::IntArrayRef(tensor.shape));
  };
  for (const auto& [name, tensor] : wanted) {
    const auto found = stored.find(name);
    if (found == stored.end()) {
      missing.push_back(name);
      continue;
    }
    const auto& other = found->second;
    if (other.dtype != tensor.dtype || other.shape != tensor.shape) {
      different.push_back(name + " (stored " + text(other) + ", the model has " + text(tensor) + ")");
    }
  }
  for (const auto& [name, tensor] : stored) {
    if (!wanted.contains(name)) extra.push_back(name);
  }
  TORCH_CHECK(missing.empty() && extra.empty() && different.empty(), where, " is of another model.",
              missing.empty() ? "" : " Not stored: " + listed(missing) + ".",
              extra.empty() ? "" : " Not in the model: " + listed(extra) + ".",
              different.empty() ? "" : " Different: " + listed(different) + ".",
              " Nothing was loaded; build the model that was saved");
}

/// Throws unless `optimizer` is of the stored kind and has the stored groups.
SEALIFT_BODY void check_same_optimizer(const CheckpointIndex& stored, const CheckpointIndex& wanted,
                                       const std::string& where) {
  TORCH_CHECK(stored.optimizer == wanted.optimizer, where, " was saved with ",
              stored.optimizer.empty() ? "no optimizer" : stored.optimizer, " but ", wanted.optimizer,
              " is to be loaded; make that optimizer, or load with none to take the parameters alone");
  TORCH_CHECK(stored.groups.size() == wanted.groups.size(), where, " has ", stored.groups.size(),
              " parameter groups but the optimizer has ", wanted.groups.size(), "; make the same groups");
  for (std::size_t i = 0; i < stored.groups.size(); ++i) {
    const auto& theirs = stored.groups[i];
    const auto& ours = wanted.groups[i];
    const auto sorted = [](std::vector<std::string> names) {
      std::sort(names.begin(), names.end());
      return names;
    };
    TORCH_CHECK(sorted(theirs.parameters) == sorted(ours.parameters), where, ": parameter group ", i, " holds ",
                listed(theirs.parameters), "; the optimizer's holds ", listed(ours.parameters),
                "; make the same groups");
    for (const auto& [name, value] : ours.hyperparameters) {
      TORCH_CHECK(theirs.hyperparameters.contains(name) && theirs.hyperparameters.size() == ours.hyperparameters.size(),
                  where, ": parameter group ", i, " does not have the hyper-parameters of ", wanted.optimizer,
                  ", such as ", name, "; the checkpoint is damaged");
    }
  }
}

/// A decimal number of a rank file's metadata, at most `max`.
SEALIFT_BODY std::int64_t metadata_number(const StoredPieces& pieces, std::size_t file, const std::string& key,
                                          std::int64_t max) {
  const auto& metadata = pieces.header(file).metadata;
  const auto found = metadata.find(key);
  TORCH_CHECK(found != metadata.end(), pieces.path(file), " has no ", key, " in its metadata; it is damaged");
  std::int64_t value = 0;
  const auto* end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  TORCH_CHECK(error == std::errc{} && stop == end && value >= 0 && value <= max, pieces.path(file), ": ", key, " is '",
              found->second.substr(0, 40), "'; expected a number from 0 to ", max);
  return value;
}

SEALIFT_BODY CheckpointFiles open_checkpoint(const std::filesystem::path& folder) {
  CheckpointFiles result{.index = read_index(folder)};
  auto& pieces = result.pieces;
  const auto ranks = static_cast<std::size_t>(result.index.mesh.world_size());
  for (std::size_t number = 0; number < result.index.files.size(); ++number) {
    const auto file = pieces.open(folder / file_name(result.index, number), result.index.files[number]);
    auto& states = result.states.emplace_back();
    auto& generators = result.generators.emplace_back();
    for (const auto& entry : pieces.header(file).tensors) {
      const auto where = pieces.path(file) + ", " + entry.name;
      const auto starts = [&](std::string_view prefix) { return entry.name.starts_with(prefix); };
      if (number == ranks) {
        pieces.add("buffer/" + entry.name, file, entry, 0);
        const auto found = result.index.buffers.find(entry.name);
        TORCH_CHECK(found != result.index.buffers.end() && found->second.dtype == entry.dtype, where,
                    " is not what index.json says; the checkpoint is damaged");
        continue;
      }
      TORCH_CHECK(entry.shape.size() == 1, where, " has ", entry.shape.size(), " dimensions; expected 1");
      const auto numel = static_cast<std::int64_t>(entry.shape[0]);
      if (starts("rng/")) {
        TORCH_CHECK(entry.dtype == "U8" && numel <= 1 << 20, where, " is no generator's state; it is damaged");
        pieces.add(std::to_string(number) + "/" + entry.name, file, entry, 0);
        generators[entry.name] = numel;
        continue;
      }
      const bool is_state = starts("optimizer/");
      const auto cut = is_state ? entry.name.find('/', 10) : 5;
      TORCH_CHECK((is_state && cut != std::string::npos) || starts("model/"), where,
                  " is nothing that a checkpoint has");
      const auto name = entry.name.substr(cut + 1);
      const auto known = result.index.parameters.find(name);
      TORCH_CHECK(known != result.index.parameters.end(), where, ": index.json has no such parameter");
      TORCH_CHECK(is_state || known->second.dtype == entry.dtype, where, " has dtype ", entry.dtype,
                  "; index.json says ", known->second.dtype, "; the checkpoint is damaged");
      const auto first = metadata_number(pieces, file, "first/" + name, known->second.numel);
      TORCH_CHECK(numel <= known->second.numel - first, where, " has elements up to ", first, " + ", numel,
                  " of a parameter of ", known->second.numel, "; the checkpoint is damaged");
      pieces.add(entry.name, file, entry, first);
      if (!is_state) continue;
      auto& state = states[name];
      state.step = metadata_number(pieces, file, "step/" + name, std::int64_t{1} << 62);
      state.tensors.push_back(entry.name.substr(10, cut - 10));
    }
  }
  pieces.sort();
  return result;
}

/// Requests the state of elements [first, first + numel) of a parameter. If pieces have different steps, since only
/// some ranks had a gradient, the highest counts; where a piece had no state yet it is zero.
SEALIFT_BODY std::optional<ParameterState> request_state(CheckpointFiles& files, const std::string& name,
                                                         std::int64_t first, std::int64_t numel) {
  std::set<std::string> tensors;
  ParameterState state;
  for (const auto& piece : files.pieces.overlapping("model/" + name, first, numel)) {
    const auto found = files.states[piece.file].find(name);
    if (found == files.states[piece.file].end()) continue;
    state.step = std::max(state.step, found->second.step);
    tensors.insert(found->second.tensors.begin(), found->second.tensors.end());
  }
  for (const auto& tensor : required_state(files.index.optimizer)) {
    TORCH_CHECK(tensors.empty() || tensors.contains(tensor), "the state of ", name, " has no ", tensor, ", which ",
                files.index.optimizer, " needs; the checkpoint is damaged");
  }
  for (const auto& tensor : tensors) {
    state.tensors.emplace_back(tensor, files.pieces.request("optimizer/" + tensor + "/" + name, first, numel, true));
  }
  return tensors.empty() ? std::nullopt : std::optional(std::move(state));
}

SEALIFT_BODY std::uint64_t derived_seed(const TrainingState& state, std::int64_t rank) {
  auto value = state.seed;
  for (const auto part : {state.step, rank}) {
    value += static_cast<std::uint64_t>(part) + 0x9e3779b97f4a7c15u;  // splitmix64
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    value ^= value >> 31;
  }
  return value;
}

SEALIFT_BODY void assign(const std::vector<Assignment>& assignments) {
  at::NoGradGuard no_grad;
  for (auto [target, value] : assignments) target.copy_(value.view(target.sizes()));
}

/// Requests what this rank holds of every parameter that is `wanted`; `key` makes the stored name from the parameter's.
template <class Key>
std::vector<Assignment> request_parameters(StoredPieces& pieces, const Parallel& parallel,
                                           const std::map<std::string, StoredTensor>& wanted, Key key) {
  std::vector<Assignment> result;
  for (const auto& parameter : parallel.parameters()) {
    const auto numel = parameter.shard.numel();
    if (numel == 0 || !wanted.contains(parameter.name)) continue;
    result.push_back({parameter.shard, pieces.request(key(parameter.name), parameter.offset, numel)});
  }
  return result;
}

template <class Key>
std::vector<Assignment> request_buffers(StoredPieces& pieces, const torch::nn::Module& model, Key key) {
  std::vector<Assignment> result;
  for (const auto& item : model.named_buffers()) {
    const auto numel = item.value().numel();
    if (numel > 0) result.push_back({item.value(), pieces.request(key(item.key()), 0, numel)});
  }
  return result;
}

/// What `read` says of a checkpoint's bytes, or DamagedCheckpoint. Memory that ran out is no damage.
template <class Read>
auto undamaged(Read read) {
  try {
    return read();
  } catch (const DamagedCheckpoint&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::Error& error) {
    throw DamagedCheckpoint(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw DamagedCheckpoint(error.what());
  }
}

/// `all_or_none` for what may be damaged: where a rank finds damage, and none another fault, all throw
/// DamagedCheckpoint. Collective.
template <class Work>
void all_undamaged(Collectives& world, const std::string& doing, Work work) {
  const auto texts = all_or_none(world, doing, [&]() -> std::string {
    try {
      work();
    } catch (const DamagedCheckpoint& error) {
      return error.what_without_backtrace();
    }
    return "";
  });
  const auto& own = texts[static_cast<std::size_t>(world.rank())];
  if (!own.empty()) throw DamagedCheckpoint(own);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    throw DamagedCheckpoint(c10::str(doing, ": rank ", rank, " could not: ", texts[rank]));
  }
}

}  // namespace detail

SEALIFT_BODY TrainingState load_checkpoint(const std::filesystem::path& path, torch::nn::Module& model,
                                           Parallel& parallel, torch::optim::Optimizer* optimizer,
                                           const std::function<void(const TrainingState&)>& accept) {
  auto& world = parallel.groups().world;
  const auto rank = world.rank();
  TrainingState state;
  std::vector<detail::Assignment> assignments;
  std::vector<std::pair<at::Tensor, std::optional<ParameterState>>> states;
  std::vector<Hyperparameters> groups;
  std::map<std::string, at::Tensor> generators;
  bool same_world = false;
  detail::all_undamaged(world, "loading " + path.string(), [&] {
    auto files = detail::undamaged([&] { return detail::open_checkpoint(path); });
    const auto& index = files.index;
    if (accept) accept(index.state);
    const auto wanted = detail::make_index(model, parallel, optimizer, {}, index.frozen);
    detail::check_same_tensors(index.parameters, wanted.parameters, path.string());
    detail::check_same_tensors(index.buffers, wanted.buffers, path.string());
    if (optimizer) detail::check_same_optimizer(index, wanted, path.string());
    state = index.state;
    same_world = index.mesh == parallel.groups().mesh;

    detail::undamaged([&] {
      assignments = detail::request_parameters(files.pieces, parallel, wanted.parameters,
                                               [](const auto& name) { return "model/" + name; });
      auto buffers = detail::request_buffers(files.pieces, model, [](const auto& name) { return "buffer/" + name; });
      assignments.insert(assignments.end(), buffers.begin(), buffers.end());
      for (const auto& parameter : parallel.parameters()) {
        if (!optimizer || !parameter.shard.requires_grad()) continue;
        states.emplace_back(parameter.shard,
                            detail::request_state(files, parameter.name, parameter.offset, parameter.shard.numel()));
      }
      for (const auto& group : index.groups) groups.push_back(group.hyperparameters);
      if (same_world) {
        const auto number = static_cast<std::size_t>(rank);
        for (const auto& [name, bytes] : files.generators[number]) {
          generators[name] = files.pieces.request(std::to_string(rank) + "/" + name, 0, bytes);
        }
      }
      files.pieces.read();
      for (auto& [name, generator] : detail::generators(parallel)) {  // on a copy: an invalid state throws here
        if (generators.contains(name)) generator.clone().set_state(generators.at(name));
      }
    });
  });

  detail::assign(assignments);
  if (optimizer) {
    for (const auto& [shard, value] : states) set_parameter_state(*optimizer, shard, value);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      set_hyperparameters(optimizer->param_groups()[i].options(), groups[i]);
    }
  }
  for (auto& [name, generator] : detail::generators(parallel)) {
    const auto stored = generators.find(name);
    const std::lock_guard lock(generator.mutex());
    if (stored != generators.end()) {
      generator.set_state(stored->second);
    } else {
      generator.set_current_seed(detail::derived_seed(state, rank));
    }
  }
  return state;
}

}  // namespace sealift::train
