// SPDX-License-Identifier: Apache-2.0
// An adapter as a folder in PEFT's layout: adapter_config.json and adapter_model.safetensors.
// Saved after training, read before add_lora() and parallelize(); PEFT opens what is written here, and the reverse.
// A key that would change the numbers and is not understood is refused by name.
#pragma once

#include "trainer/tuning/lora.hpp"

namespace sealift::trainer {

/// Writes `model`'s adapters, all made with the same options, into `folder`, which is made if it is not there; rank 0
/// writes. `base` is what adapter_config.json calls the model. Collective.
void save_adapter(const std::filesystem::path& folder, const torch::nn::Module& model, train::Parallel& parallel,
                  const std::string& base = "");

/// A reward model's head; an adapter of which it is a saved module has PEFT's task_type SEQ_CLS.
inline constexpr const char* kScore = "score";

/// What FOLDER/adapter_config.json says; throws naming a key that is unknown or not what it should be.
LoraOptions read_adapter_config(const std::filesystem::path& folder);

/// The same from its text; `where` is for messages.
LoraOptions parse_adapter_config(std::string_view text, const std::string& where);

/// Throws where the adapter in `folder` says that it was trained over another base than `model`: other weights, of
/// whatever shape. One that says nothing, as other programs', passes.
void check_base(const std::filesystem::path& folder, const std::filesystem::path& model);

/// First values of a model to which `add_lora` was applied with the folder's `options`: adapters and modules_to_save
/// from its file, the rest from `base`, which outlives the source. `tied_head`: the model's head is its embedding;
/// throws where the adapter trained the one without the other, as PEFT can.
std::unique_ptr<train::Source> adapter_source(const std::filesystem::path& folder, train::Source& base,
                                              const LoraOptions& options = {}, bool tied_head = false);

}  // namespace sealift::trainer
