// SPDX-License-Identifier: Apache-2.0
// A decoder-only language model as `DecoderConfig` describes it, of any family of families.hpp.
// Built from a model folder's config, filled by a `Source` (hf_folder.hpp), spread by `parallelize`, called by
// objectives. One class whose parts are plain options. The head is used inside the root's forward, where its unit is
// gathered.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/decoder_layer.hpp"
#include "trainer/models/label_log_probabilities.hpp"
#include "trainer/models/token_batch.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer {

struct DecoderOptions {
  bool recompute = false;                          ///< run each layer again in backward instead of keeping activations
  std::optional<at::ScalarType> dtype = {};        ///< of the parameters; unset: the config's
  std::int64_t logits_at_a_time = kLogitsAtATime;  ///< see label_log_probabilities.hpp
};

/// A matrix without a bias that is used by the decoder itself: the token embedding and the heads.
class TableImpl : public torch::nn::Module {
 public:
  TableImpl(std::int64_t rows, std::int64_t width)
      : weight(register_parameter("weight", torch::empty({rows, width}))) {}

  at::Tensor weight;  ///< [rows, width]
};
TORCH_MODULE(Table);

class DecoderImpl : public torch::nn::Module {
 public:
  explicit DecoderImpl(const DecoderConfig& config, const DecoderOptions& options = {});

  /// Without labels: logits [batch, time, vocabulary] in the model's dtype. With labels: their log-probabilities, fp32
  /// [batch, time], 0 where there is none. From a reward head: the score at the last token, fp32, of each row, or where
  /// there are segments, of each segment without padding, row by row. And the router's balancing loss, a scalar that
  /// is `per_token` at balance (transformers' load_balancing_loss_func, over all layers), not yet multiplied by
  /// `ExpertConfig::loss_coefficient`; undefined without experts.
  std::tuple<at::Tensor, at::Tensor> forward(const TokenBatch& batch);

  /// Logits [batch, vocabulary] of what follows the last of `ids` [batch, time], which follow those in `cache`: a whole
  /// prompt into an empty one, later single tokens. Without gradients. Call it by ShardableImpl::call_gathered.
  at::Tensor next_logits(const at::Tensor& ids, KeyValueCache& cache);

  const DecoderConfig& config() const { return config_; }

 private:
  /// Token numbers -> normalized hidden states [batch, time, width], and the router's loss
  std::tuple<at::Tensor, at::Tensor> run(const at::Tensor& ids, const Surroundings& around);
  /// [..., width] -> [..., vocabulary]
  at::Tensor logits(const at::Tensor& hidden) const;
  /// Of queries of layers that do not turn, for Surroundings.
  at::Tensor temperature(const at::Tensor& positions) const;
  /// Of each row's last token, or of the tokens `last` of the flattened batch.
  at::Tensor scores(const at::Tensor& hidden, const at::Tensor& last) const;
  at::Tensor router_loss(const at::Tensor& routed, const TokenBatch& batch, const at::Tensor& counted) const;
  const at::Tensor& head() const { return config_.tied_head ? embedding_->weight : head_->weight; }

  DecoderConfig config_;
  DecoderOptions options_;
  Rope rope_;
  std::optional<Rope> window_rope_;
  Table embedding_{nullptr};
  std::vector<train::Shardable<train::Recomputed<DecoderLayer>>> layers_;
  RmsNorm norm_{nullptr};
  Table head_{nullptr};  ///< lm_head or score; null when tied
  c10::intrusive_ptr<TokenWeights> token_weights_ = c10::make_intrusive<TokenWeights>();
};
TORCH_MODULE(Decoder);

/// What a job trains.
using Model = train::Shardable<Decoder>;

/// First values for a training from nothing: matrices normal with the config's initializer_range, norms so that they
/// scale by 1, biases 0.
train::InitFunction first_values(const DecoderConfig& config, std::uint64_t seed);

}  // namespace sealift::trainer
