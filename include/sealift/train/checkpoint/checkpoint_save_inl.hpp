// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_save.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/checkpoint/checkpoint_save.hpp>

#include <cmath>

namespace sealift::train {

namespace detail {

SEALIFT_BODY std::vector<std::string> gather_texts(Collectives& world, const std::string& text) {
  constexpr std::int64_t kBytes = 1000;
  auto mine = torch::zeros({kBytes}, torch::kByte);
  std::memcpy(mine.mutable_data_ptr(), text.data(), std::min<std::size_t>(text.size(), kBytes - 1));
  auto all = mine.repeat({world.size()});
  world.all_gather(all, mine).wait();
  std::vector<std::string> texts;
  for (std::int64_t rank = 0; rank < world.size(); ++rank) {
    texts.emplace_back(static_cast<const char*>(all.const_data_ptr()) + rank * kBytes);
  }
  return texts;
}

SEALIFT_BODY std::pair<std::int64_t, std::int64_t> written_range(const ShardedParameter& parameter) {
  const auto copies = parameter.copies, copy = parameter.copy, numel = parameter.shard.numel();
  // Not numel * copy / copies, which may overflow.
  const auto cut = [&](std::int64_t i) { return numel / copies * i + std::min(i, numel % copies); };
  return {parameter.offset + cut(copy), cut(copy + 1) - cut(copy)};
}

SEALIFT_BODY std::vector<std::pair<std::string, at::Generator>> generators(const Parallel& parallel) {
  std::vector<std::pair<std::string, at::Generator>> result = {{"rng/cpu", at::detail::getDefaultCPUGenerator()}};
  for (const auto& parameter : parallel.parameters()) {
    const auto device = parameter.shard.device();
    if (device.is_cpu()) continue;
    result.emplace_back("rng/" + device.str().substr(0, device.str().find(':')),
                        at::globalContext().defaultGenerator(device));
    break;
  }
  return result;
}

/// What one rank writes: tensors and metadata of its file.
struct RankPart {
  TensorList tensors;
  std::map<std::string, std::string> metadata;
};

SEALIFT_BODY bool is_saved(const ShardedParameter& parameter, bool frozen) {
  TORCH_CHECK(
      !frozen || !parameter.stored, "parameter '", parameter.name, "' is kept encoded, so its elements cannot ",
      "be in a checkpoint; save with SaveOptions::frozen = false, and load after parallelize() with the source");
  return frozen || parameter.shard.requires_grad();
}

/// This rank's part. Tensors share the shards' memory where that is on the host; with `copy` they are copies.
SEALIFT_BODY RankPart rank_part(Parallel& parallel, torch::optim::Optimizer* optimizer, bool copy, bool frozen) {
  RankPart part;
  const auto on_host = [&](const at::Tensor& tensor) {
    return tensor.detach().to(at::TensorOptions(at::kCPU), false, copy);
  };
  for (const auto& parameter : parallel.parameters()) {
    const auto [first, numel] = written_range(parameter);
    if (!is_saved(parameter, frozen) || numel == 0) continue;
    const auto slice = [&, first = first, numel = numel](const at::Tensor& tensor) {
      return on_host(tensor.detach().reshape({-1}).narrow(0, first - parameter.offset, numel));
    };
    part.metadata["first/" + parameter.name] = std::to_string(first);
    part.tensors.emplace_back("model/" + parameter.name, slice(parameter.shard));
    const auto state = optimizer ? parameter_state(*optimizer, parameter.shard) : std::nullopt;
    if (!state) continue;
    part.metadata["step/" + parameter.name] = std::to_string(state->step);
    for (const auto& [name, tensor] : state->tensors) {
      TORCH_CHECK(tensor.numel() == parameter.shard.numel(), "the optimizer's ", name, " of ", parameter.name, " has ",
                  tensor.numel(), " elements; expected one per element of the shard, ", parameter.shard.numel());
      part.tensors.emplace_back("optimizer/" + name + "/" + parameter.name, slice(tensor));
    }
  }
  for (auto& [name, generator] : generators(parallel)) {
    const std::lock_guard lock(generator.mutex());
    part.tensors.emplace_back(name, generator.get_state());
  }
  return part;
}

SEALIFT_BODY CheckpointIndex make_index(const torch::nn::Module& model, Parallel& parallel,
                                        torch::optim::Optimizer* optimizer, const TrainingState& state, bool frozen) {
  CheckpointIndex index{.mesh = parallel.groups().mesh, .state = state, .frozen = frozen};
  std::map<at::TensorImpl*, std::string> names;
  for (const auto& parameter : parallel.parameters()) {
    if (!is_saved(parameter, frozen)) continue;
    names[parameter.shard.unsafeGetTensorImpl()] = parameter.name;
    index.parameters[parameter.name] = {dtype_name(parameter.shard.scalar_type()), parameter.sizes};
  }
  for (const auto& item : model.named_buffers()) {
    index.buffers[item.key()] = {dtype_name(item.value().scalar_type()), item.value().sizes().vec()};
  }
  if (!optimizer) return index;
  parallel.check_optimizer(*optimizer);
  index.optimizer = optimizer_kind(*optimizer);
  for (auto& group : optimizer->param_groups()) {
    StoredGroup stored{.hyperparameters = hyperparameters(group.options())};
    for (const auto& shard : group.params()) stored.parameters.push_back(names.at(shard.unsafeGetTensorImpl()));
    index.groups.push_back(std::move(stored));
  }
  return index;
}

/// Throws where a hyper-parameter is not finite: JSON has no such number, so the index could not be read back.
SEALIFT_BODY void check_finite(const CheckpointIndex& index) {
  for (const auto& group : index.groups) {
    for (const auto& [name, value] : group.hyperparameters) {
      TORCH_CHECK(std::isfinite(value), "the optimizer's ", name, " is ", value, " for ",
                  group.parameters.empty() ? "an empty group" : group.parameters.front(),
                  "; expected a finite number: what computes it, as a schedule does, is wrong");
    }
  }
}

/// Makes an empty folder for the checkpoint; removes what an interrupted save left there.
SEALIFT_BODY void prepare_folder(const std::filesystem::path& path) {
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  sync_folder(path.parent_path());
}

/// Removes whole checkpoints beyond the last `keep`, and unfinished ones before `step`. What cannot be removed stays
/// until the next save tries again: the new one is whole all the same.
SEALIFT_BODY void remove_old(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep) {
  const auto steps = list_steps(folder);
  std::int64_t whole = 0;
  for (auto entry = steps.rbegin(); entry != steps.rend(); ++entry) {
    const auto& path = entry->second;
    if (is_whole(path) ? keep <= 0 || ++whole <= keep || entry->first >= step : entry->first >= step) continue;
    // The index goes first: a checkpoint that is half removed is never loaded.
    std::error_code error;
    if (std::filesystem::remove(path / kIndexFile, error)) sync_folder(path);
    if (!error) std::filesystem::remove_all(path, error);
  }
}

/// The sum of the numbers that all ranks said.
SEALIFT_BODY std::int64_t sum_of(const std::vector<std::string>& numbers) {
  std::int64_t sum = 0;
  for (const auto& number : numbers) sum += number.empty() ? 0 : std::stoll(number);
  return sum;
}

/// Removes what a failed save has written, which takes room that the next try needs.
SEALIFT_BODY void remove_failed(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!is_whole(path)) std::filesystem::remove_all(path, ignored);
}

}  // namespace detail

SEALIFT_BODY AsyncSave::AsyncSave(std::filesystem::path path, std::int64_t bytes, CheckpointIndex index,
                                  Collectives world, SaveOptions options, std::future<std::vector<FileDigest>> written)
    : path_(std::move(path)),
      bytes_(bytes),
      index_(std::move(index)),
      world_(std::move(world)),
      options_(options),
      written_(std::move(written)) {}

SEALIFT_BODY std::filesystem::path AsyncSave::wait() {
  std::vector<FileDigest> own;
  const auto doing = "saving " + path_.string();
  try {
    const auto texts = detail::all_saved(world_, doing, [&] {
      own = written_.get();
      return std::to_string(own[0].bytes) + " " + own[0].sha256;
    });
    detail::all_saved(world_, doing, [&]() -> std::string {
      if (world_.rank() != 0) return "";
      for (const auto& text : texts) {
        const auto space = text.find(' ');
        index_.files.push_back({std::stoull(text.substr(0, space)), text.substr(space + 1)});
      }
      if (own.size() > 1) index_.files.push_back(own[1]);
      OutputFile file(path_ / kIndexFile);
      const auto text = write_index(index_);
      file.write(text.data(), text.size());
      file.commit();
      detail::remove_old(path_.parent_path(), index_.state.step, options_.keep_last);
      return "";
    });
  } catch (SaveFailed& error) {
    error.bytes = bytes_;
    error.folder = path_.parent_path();
    if (world_.rank() == 0) detail::remove_failed(path_);
    throw;
  }
  return path_;
}

namespace detail {

SEALIFT_BODY AsyncSave start_save(const std::filesystem::path& folder, const torch::nn::Module& model,
                                  Parallel& parallel, torch::optim::Optimizer* optimizer, const TrainingState& state,
                                  SaveOptions options, bool in_background) {
  at::NoGradGuard no_grad;
  auto& world = parallel.groups().world;
  const auto rank = world.rank();
  TORCH_CHECK(state.step >= 0 && state.sampler_position >= 0, "step is ", state.step, " and sampler_position ",
              state.sampler_position, "; neither may be negative");
  const auto path = folder / step_folder(state.step);
  RankPart part;
  TensorList buffers;
  CheckpointIndex index;
  std::string no_folder;  // of rank 0, why it could not be made: not the fault of what is saved
  const auto sizes = all_or_none(world, "saving " + path.string(), [&]() -> std::string {
    part = rank_part(parallel, optimizer, in_background, options.frozen);
    std::int64_t bytes = 0;
    for (const auto& [name, tensor] : part.tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
    if (rank != 0) return std::to_string(bytes);
    index = make_index(model, parallel, optimizer, state, options.frozen);
    check_finite(index);
    for (const auto& item : model.named_buffers()) {
      buffers.emplace_back(item.key(), item.value().detach().to(at::TensorOptions(at::kCPU), false, in_background));
      bytes += static_cast<std::int64_t>(buffers.back().second.nbytes());
    }
    TORCH_CHECK(!is_whole(path), path.string(), " is a whole checkpoint already; load it and go on from there, or ",
                "save into another folder");
    try {
      prepare_folder(path);
    } catch (const c10::Error& error) {
      no_folder = error.what_without_backtrace();
    } catch (const std::exception& error) {
      no_folder = error.what();
    }
    return std::to_string(bytes) + (no_folder.empty() ? "" : " " + no_folder);
  });
  const auto bytes = sum_of(sizes);
  if (const auto reason = sizes.front().find(' '); reason != std::string::npos) {
    SaveFailed error(sizes.front().substr(reason + 1));
    error.bytes = bytes;
    error.folder = folder;
    throw error;
  }
  auto write = [path, rank, part = std::move(part), buffers = std::move(buffers)] {
    std::vector<FileDigest> written = {write_tensor_file(path / rank_file(rank), part.tensors, part.metadata)};
    if (!buffers.empty()) written.push_back(write_tensor_file(path / kBuffersFile, buffers, {}));
    return written;
  };
  auto written = std::async(in_background ? std::launch::async : std::launch::deferred, std::move(write));
  return AsyncSave(path, bytes, std::move(index), world, options, std::move(written));
}

}  // namespace detail

SEALIFT_BODY std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const torch::nn::Module& model,
                                                   Parallel& parallel, torch::optim::Optimizer* optimizer,
                                                   const TrainingState& state, SaveOptions options) {
  return detail::start_save(folder, model, parallel, optimizer, state, options, false).wait();
}

SEALIFT_BODY AsyncSave save_checkpoint_async(const std::filesystem::path& folder, const torch::nn::Module& model,
                                             Parallel& parallel, torch::optim::Optimizer* optimizer,
                                             const TrainingState& state, SaveOptions options) {
  return detail::start_save(folder, model, parallel, optimizer, state, options, true);
}

}  // namespace sealift::train
