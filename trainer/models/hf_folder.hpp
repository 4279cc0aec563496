// SPDX-License-Identifier: Apache-2.0
// A model as a folder in Hugging Face's layout: where first values come from, and what a trained model is saved as.
// `parallelize` takes the source, so each rank reads its ranges only; saving gathers a slab at a time.
// Names are the files' own, so nothing is mapped; what transformers ignores in a folder is left out here too.
#pragma once

#include "trainer/models/decoder.hpp"

namespace sealift::trainer {

/// The parameters in the folder's safetensors, for a `Decoder` of `config`. `otherwise` gives parameters from outside
/// of the folder's model: an adapter's, or a reward head on a model that had none; it outlives the source. A parameter
/// that the folder should have and has not is an error, whatever `otherwise` could give.
std::unique_ptr<train::Source> model_folder_source(const std::filesystem::path& folder, const DecoderConfig& config,
                                                   train::Source* otherwise = nullptr);

struct SaveFolderOptions {
  std::uint64_t max_file_bytes = 5'000'000'000;  ///< of a file, as in transformers' save_pretrained; above 0
  std::optional<at::ScalarType> dtype = {};      ///< in the files and in config.json; unset: the parameters' own
  std::optional<std::int64_t> end_token = {};    ///< generation stops after it too, beside what the base says
  train::ExportOptions changes = {};             ///< what else is done on the way: merge_adapters() of an adapted model
};

/// Writes `model` with its config.json and the tokenizer's files of `base`, the folder that it was made from, as a new
/// folder that transformers opens. Rank 0 writes; the folder has its name only when it is whole. Throws on every rank
/// if it exists or cannot be written. Collective.
void save_model_folder(const std::filesystem::path& folder, const std::filesystem::path& base, const DecoderImpl& model,
                       train::Parallel& parallel, const SaveFolderOptions& options = {});

/// Copies the tokenizer's and generation's files of one model folder to another, as far as they exist.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace sealift::trainer
