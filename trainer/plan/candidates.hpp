// SPDX-License-Identifier: Apache-2.0
// A model folder as the tuners would train it: what the table compares.
// Between config.json and the table; the models are on the meta device and gone when their sizes are read.
// Asked of the model that would be trained, so that a projection that is not adapted is not counted as one.
#pragma once

#include "trainer/models/decoder.hpp"
#include "trainer/plan/meta_shape.hpp"
#include "trainer/plan/table.hpp"
#include "trainer/tuning/qlora.hpp"

namespace sealift::trainer::plan {

/// `tuner`: none, lora or qlora; `compute_bytes` 2 (bf16) or 4 (fp32). As fine_tune builds it: what is trained is
/// kept in fp32, what is frozen in the dtype that is computed in.
inline Candidate candidate_of(const DecoderConfig& config, const std::string& tuner, std::int64_t compute_bytes,
                              const LoraOptions& lora) {
  const bool adapts = tuner != "none";
  train::Policy policy{.method = train::ParallelMethod::Fsdp};
  const train::MetaDevice meta;
  train::Shardable<Decoder> model(config,
                                  DecoderOptions{.dtype = adapts && compute_bytes == 2 ? at::kBFloat16 : at::kFloat});
  if (adapts) add_lora(*model, lora);
  if (tuner == "qlora") policy.store = store_projections(*model);
  return {tuner, compute_bytes, model_shape(*model, config, policy, adapts ? &lora : nullptr)};
}

}  // namespace sealift::trainer::plan
