// SPDX-License-Identifier: Apache-2.0
// The model that a fine-tuning job trains: its config, dtypes and adapters, and where first values come from.
// Below fine_tune, which is the story, and method_choice, which counts it; nothing here has memory for parameters.
#pragma once

#include "trainer/models/decoder.hpp"
#include "trainer/settings/fine_tune_options.hpp"
#include "trainer/tuning/lora.hpp"

namespace sealift::trainer {

/// The dtype that `precision` computes in; none: that of the parameters.
std::optional<at::ScalarType> compute_dtype(const std::string& precision);

/// The config of the model that is trained: for `reward` one with a score, whatever the folder has. Throws
/// std::invalid_argument where the folder's model is not what the task needs.
DecoderConfig config_of(const FineTuneOptions& options);

/// What is trained is kept in fp32; what is frozen in the dtype that is computed in.
Model build_on_meta(const FineTuneOptions& options, const DecoderConfig& config);

/// The adapters that the settings describe, or the folder that they go on from. A score is trained whole beside them.
LoraOptions lora_of(const FineTuneOptions& options);

/// Makes of the model what is trained; before parallelize().
void adapt(Model& model, const FineTuneOptions& options);

/// Where first values come from: the model's files, and of adapters and a new score the seed; without files, for
/// pretrain, the seed.
struct FirstValues {
  std::unique_ptr<train::Source> score = {};  ///< under `base`
  std::unique_ptr<train::Source> base = {};
  std::unique_ptr<train::Source> adapted = {};  ///< over `base`

  train::Source* source() const { return adapted ? adapted.get() : base.get(); }
};

FirstValues first_values_of(const FineTuneOptions& options, const DecoderConfig& config);

struct ModelSize {
  std::int64_t parameters = 0, trainable = 0;
};

ModelSize size_of(const torch::nn::Module& model);

}  // namespace sealift::trainer
