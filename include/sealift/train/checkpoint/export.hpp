// SPDX-License-Identifier: Apache-2.0
// Plain safetensors out and in: one file, or a set of files with model.safetensors.index.json as Hugging Face has it.
// Beside checkpoints, which continue training: for other programs to read, and for a run to start from.
// Streamed in slabs: rank 0 never holds more of the model than its own shards and one slab, however large the model is.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/checkpoint/safetensors_source.hpp>
#include <sealift/train/first_values.hpp>

namespace sealift::train {

struct ExportOptions {
  std::uint64_t max_file_bytes = 0;      ///< 0: PATH is one file; else PATH is a folder of files about this large
  std::optional<at::ScalarType> dtype;   ///< of floating tensors in the files; unset: not converted
  std::int64_t slab_bytes = 64ll << 20;  ///< gathered and written at a time

  // For `export_safetensors` only:
  FileTensors file_tensors = {};  ///< tensors that a parameter is written as; unset: one of its name
  /// Whether `dtype` is not for tensor `name`. Unset: it is for all.
  std::function<bool(const std::string& name)> keeps_dtype = {};
  /// The name that a tensor of the model is written by; empty: it is not written. Unset: names are the same.
  std::function<std::string(const std::string& name)> name = {};
  /// Second names of tensors, by what they are written as: they are written again under these.
  std::map<std::string, std::string> second_names = {};
  /// What is written instead of elements [first, first + n) of tensor `name`: of the same number and dtype, on the
  /// host. Called by rank 0 alone.
  std::function<at::Tensor(const std::string& name, std::int64_t first, at::Tensor slab)> change = {};
  /// Gives rank 0 the elements of parameters that are kept encoded: the source that `parallelize` had, or its like.
  Source* stored = nullptr;
};

namespace detail {

/// A tensor to export, before conversion.
struct ExportTensor {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> shape;
  std::function<at::Tensor(std::int64_t first, std::int64_t numel)> slab;  ///< elements of it, flat, on the host
  bool keeps_dtype = false;                                                ///< whatever the files' is
};

struct ExportFile {
  std::filesystem::path path;
  safetensors::Header header;
};

/// Assigns tensors to files, in the order given; a tensor larger than the limit gets a file of its own.
std::vector<ExportFile> plan_export(const std::filesystem::path& path,
                                    const std::vector<std::pair<std::string, ExportTensor>>& tensors,
                                    const ExportOptions& options);

/// Elements of a parameter, gathered from the ranks that hold them, in host memory of every rank. An all-reduce of
/// bytes, to which all ranks but one add zero, so it is exact for every dtype. Collective over `Parallel::holders`.
at::Tensor gather_slab(const ShardedParameter& parameter, Collectives& group, std::int64_t first, std::int64_t numel);

}  // namespace detail

/// Writes the whole model, parameters and buffers by name, as files that any safetensors reader opens; a tied parameter
/// is written once, under its first name. Rank 0 writes. Collective.
void export_safetensors(const std::filesystem::path& path, const torch::nn::Module& model, Parallel& parallel,
                        const ExportOptions& options = {});

/// The same from a checkpoint's files, by one process, without ranks and without the model.
void export_checkpoint(const std::filesystem::path& checkpoint, const std::filesystem::path& path,
                       const ExportOptions& options = {});

/// Sets `model` from a plain safetensors file, or a folder with model.safetensors or a set of files; floating dtypes
/// are converted. Each rank reads the ranges of its shards. The names must be exactly the model's; second names of tied
/// parameters are allowed. Otherwise throws on every rank and changes nothing. Collective.
void load_safetensors(const std::filesystem::path& path, torch::nn::Module& model, Parallel& parallel);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/export_inl.hpp>
#endif
