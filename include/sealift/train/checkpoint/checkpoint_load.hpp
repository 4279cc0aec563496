// SPDX-License-Identifier: Apache-2.0
// Loads a checkpoint into a model and optimizer of any world: each rank reads the ranges that its shards need.
// Before the first step: index -> comparison -> pieces of files -> host tensors -> (all ranks succeeded) -> the model.
// The model does not change before every rank has read and checked everything, so an error leaves it as it was.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/checkpoint/checkpoint_save.hpp>
#include <sealift/train/checkpoint/stored_pieces.hpp>

namespace sealift::train {

namespace detail {

/// The first few of `names`, for a message.
std::string listed(const std::vector<std::string>& names);

/// Throws, with lists, unless both sides have the same names with equal dtypes and shapes.
void check_same_tensors(const std::map<std::string, StoredTensor>& stored,
                        const std::map<std::string, StoredTensor>& wanted, const std::string& where);

/// A parameter's optimizer state as one rank's file has it.
struct StoredState {
  std::int64_t step = 0;
  std::vector<std::string> tensors;  ///< exp_avg, ...
};

/// The open files of a checkpoint, their headers checked against the index.
struct CheckpointFiles {
  CheckpointIndex index;
  StoredPieces pieces;
  std::vector<std::map<std::string, StoredState>> states;       ///< by file and parameter
  std::vector<std::map<std::string, std::int64_t>> generators;  ///< by file: name -> bytes
};

CheckpointFiles open_checkpoint(const std::filesystem::path& folder);

/// A seed for a rank of another world than the saved one: well mixed, so that ranks and steps differ.
std::uint64_t derived_seed(const TrainingState& state, std::int64_t rank);

/// A tensor of the model and its new value, on the host.
struct Assignment {
  at::Tensor target, value;
};

void assign(const std::vector<Assignment>& assignments);

}  // namespace detail

/// A checkpoint that cannot be read as it was written: a file of it is missing, cut or changed. Thrown by all ranks
/// alike before anything was set, so a run may go on from an older one.
class DamagedCheckpoint : public c10::Error {
 public:
  explicit DamagedCheckpoint(const std::string& what) : Error(what) {}
};

/// Sets `model`, `optimizer` (null: not) and the random generators from the checkpoint in `path` (a step-N folder), and
/// returns its training state. Any world and mesh may load: with the saving ones, training goes on bit for bit;
/// otherwise random numbers are seeded from seed, step and rank. `accept` is asked before anything is set, and throws
/// where the state is not one to go on from. Throws on every rank, and changes nothing: DamagedCheckpoint when a file
/// is missing, cut or changed or `accept` threw that, and another error when it is of another model. Collective.
TrainingState load_checkpoint(const std::filesystem::path& path, torch::nn::Module& model, Parallel& parallel,
                              torch::optim::Optimizer* optimizer,
                              const std::function<void(const TrainingState&)>& accept = {});

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/checkpoint_load_inl.hpp>
#endif
