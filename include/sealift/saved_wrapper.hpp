// SPDX-License-Identifier: Apache-2.0
// Whether the names of a model's tensors show that a wrapper was saved and not the model, and what to save instead.
// A leaf that belongs to neither half and is not installed: the packager asks before a folder leaves, the trainer
// before it trains. transformers goes on with random values where such a name is not the model's.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

namespace sealift {

/// What a program has put into names.
struct SavedWrapper {
  const char* part;    ///< "module."
  const char* remedy;  ///< who puts it there, and what to save
  std::string name;    ///< the first tensor that has it; empty: it stands before every name
};

/// The wrapper in the keys of `tensors`, a map that is not empty.
template <class Tensors>
std::optional<SavedWrapper> saved_wrapper(const Tensors& tensors) {
  struct Known {
    const char *part, *remedy;
  };
  static constexpr Known kBeforeAll[] = {
      {"_orig_mod.", "torch.compile puts it there: save model._orig_mod"},
      {"module.", "DistributedDataParallel and DeepSpeed put it there: save model.module"},
      {"base_model.model.", "PEFT puts it there: save model.merge_and_unload()"},
      {"_fsdp_wrapped_module.", "FSDP puts it there: save the state_dict of the model in it"}};
  static constexpr Known kWithin[] = {
      // where layers were wrapped one by one
      {"._orig_mod.", "torch.compile puts it there: compile the model in place, or save before"},
      {"._fsdp_wrapped_module.", "FSDP puts it there: save its full state_dict"},
      {"._checkpoint_wrapped_module.", "PyTorch's checkpoint_wrapper puts it there: save the model without it"},
      {".base_layer.", "PEFT puts it there: save model.merge_and_unload()"}};
  for (const auto& [part, remedy] : kBeforeAll) {
    const auto has_it = [part = part](const auto& tensor) { return tensor.first.starts_with(part); };
    if (std::all_of(tensors.begin(), tensors.end(), has_it)) return SavedWrapper{part, remedy, {}};
  }
  for (const auto& [part, remedy] : kWithin) {
    const auto has_it = [part = part](const auto& tensor) { return tensor.first.find(part) != std::string::npos; };
    const auto found = std::find_if(tensors.begin(), tensors.end(), has_it);
    if (found != tensors.end()) return SavedWrapper{part, remedy, found->first};
  }
  return std::nullopt;
}

}  // namespace sealift
