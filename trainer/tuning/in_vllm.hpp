// SPDX-License-Identifier: Apache-2.0
// What keeps vLLM from serving an adapter beside its base, or makes it compute something else.
// Said when a run begins, since merging is a setting of it. Source: vLLM's PEFTHelper and LoRAConfig.
#pragma once

#include "trainer/tuning/lora_options.hpp"

namespace sealift::trainer {

/// A line for each thing, with the way on; none where vLLM takes the adapter with its own defaults.
std::vector<std::string> in_vllm(const LoraOptions& options);

}  // namespace sealift::trainer
