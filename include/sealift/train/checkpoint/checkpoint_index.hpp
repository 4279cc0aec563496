// SPDX-License-Identifier: Apache-2.0
// A checkpoint's index: the model, the step, the world that saved, and the digest of every file. Text in, value out.
// Written last by `checkpoint_save`, read first by `checkpoint_load`; a folder with an index is a whole checkpoint.
// CHECKPOINT.md is the format. An index is hostile input until it was checked here.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/checkpoint/optimizer_state.hpp>
#include <sealift/train/checkpoint/tensor_file.hpp>
#include <sealift/train/mesh.hpp>

namespace sealift::train {

/// What a program needs to continue training, besides parameters and optimizer.
struct TrainingState {
  std::int64_t step = 0;                     ///< optimizer steps done; names the checkpoint's folder
  std::int64_t sampler_position = 0;         ///< samples used so far, over all ranks
  std::uint64_t seed = 0;                    ///< from which a world of another size seeds its ranks
  std::map<std::string, std::string> notes;  ///< for the program itself

  bool operator==(const TrainingState&) const = default;
};

/// Dtype and whole shape of a parameter or buffer.
struct StoredTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t numel = 0;

  bool operator==(const StoredTensor&) const = default;
};

/// One parameter group of the optimizer.
struct StoredGroup {
  Hyperparameters hyperparameters;
  std::vector<std::string> parameters;
};

/// The content of index.json.
struct CheckpointIndex {
  Mesh mesh;
  TrainingState state;
  bool frozen = true;  ///< false: frozen parameters are not in it
  std::map<std::string, StoredTensor> parameters, buffers;
  std::string optimizer;  ///< Adam, AdamW or SGD; empty: none was saved
  std::vector<StoredGroup> groups;
  std::vector<FileDigest> files;  ///< of ranks 0, 1, ...; then that of the buffers, if there are any
};

inline constexpr const char* kIndexFile = "index.json";
inline constexpr const char* kBuffersFile = "buffers.safetensors";

/// rank-00003.safetensors
std::string rank_file(std::int64_t rank);

/// The name of file `number` of `index`. It follows from the mesh: no path is ever read from a file.
std::string file_name(const CheckpointIndex& index, std::size_t number);

/// step-000120
std::string step_folder(std::int64_t step);

std::string write_index(const CheckpointIndex& index);

/// Reads and checks the index of the checkpoint in `folder`.
CheckpointIndex read_index(const std::filesystem::path& folder);

/// Folders of `folder` that are checkpoints, whole or not, by step.
std::map<std::int64_t, std::filesystem::path> list_steps(const std::filesystem::path& folder);

bool is_whole(const std::filesystem::path& step_folder);

/// The whole checkpoint with the most steps; nothing when there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/checkpoint_index_inl.hpp>
#endif
