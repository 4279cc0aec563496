// SPDX-License-Identifier: Apache-2.0
// First values from plain safetensors: one file, or a folder with model.safetensors or with the set of files that
// model.safetensors.index.json names, as Hugging Face has it. For `parallelize`; `load_safetensors` reads by it too.
// Each rank reads the byte ranges of its shards, straight into them where no dtype is converted, and nothing else.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/checkpoint/checkpoint_load.hpp>
#include <sealift/train/flat/source.hpp>

namespace sealift::train {

struct SafetensorsOptions {
  /// The model's name of a stored tensor; empty: it is not for this model. Unset: names are the same.
  std::function<std::string(const std::string& stored)> name = {};
  Source* otherwise = nullptr;  ///< gives what is in no file, as a new head or an adapter; outlives the source
};

namespace detail {

constexpr const char* kSetIndex = "model.safetensors.index.json";

}  // namespace detail

/// Reads each tensor from the file that has it; floating dtypes are converted. The names must be exactly the model's,
/// after `SafetensorsOptions::name`: a tied parameter may be stored under any of its names, a computed buffer need not
/// be stored.
class SafetensorsSource final : public Source {
 public:
  /// Reads the headers of all files; throws on any other kind of file, and on a tensor that two files have.
  explicit SafetensorsSource(const std::filesystem::path& path, SafetensorsOptions options = {});

  SEALIFT_BODY void check(const std::vector<WantedTensor>& wanted) override;

  SEALIFT_BODY bool has(const std::string& name) const override;

  SEALIFT_BODY void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override;

 private:
  struct Stored {
    StoredTensor tensor;
    std::size_t file;
  };

  static bool fits(const StoredTensor& stored, const WantedTensor& wanted);

  std::string difference(const WantedTensor& wanted, const Stored& stored) const;

  std::string path_;
  SafetensorsOptions options_;
  StoredPieces pieces_;
  std::map<std::string, Stored> stored_;     ///< by the model's name
  std::map<std::string, std::string> keys_;  ///< tensor -> which of its names is stored
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/safetensors_source_inl.hpp>
#endif
