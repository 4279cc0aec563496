// SPDX-License-Identifier: Apache-2.0
// Grouped-query attention of a decoder layer, and what tells it which tokens see each other.
// The decoder makes one `Surroundings` in a forward; all layers share it, with its masks.
// A plain row needs no mask. Packed rows and windows run as sequences of different lengths where attention_choice.hpp
// says that the device can, by flash attention, and with a mask elsewhere.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/decoder_config.hpp"
#include "trainer/models/projection.hpp"
#include "trainer/models/rms_norm.hpp"
#include "trainer/models/rope.hpp"
#include "trainer/models/row_shape.hpp"

#include <map>

namespace sealift::trainer {

/// Keys and values of the tokens so far, for generation: each [batch, capacity, kv_heads, head_dim].
struct KeyValueCache {
  KeyValueCache(std::int64_t layers, std::int64_t most)
      : keys(static_cast<std::size_t>(layers)), values(static_cast<std::size_t>(layers)), capacity(most) {}

  std::vector<at::Tensor> keys, values;  ///< of each layer; allocated when a layer first writes
  std::int64_t length = 0;               ///< tokens in it
  std::int64_t capacity;                 ///< most of them
};

/// How far a token sees, within its sequence.
struct Reach {
  std::int64_t window = 0;  ///< itself and the window - 1 before it; 0: all before it
  std::int64_t chunk = 0;   ///< those of the same chunk of so many positions; 0: no chunks
  auto operator<=>(const Reach&) const = default;
};

/// Which tokens of a batch see each other: those before in the same segment, within reach.
class Visibility {
 public:
  /// `segments`: [batch, time] as TokenBatch has them, or undefined; `shape`: theirs. Rows of one sequence with padding
  /// after it count as rows without segments: no token looks ahead to padding.
  /// `positions` [batch or 1, time] are for chunks; undefined: along the row.
  Visibility(const at::Tensor& segments, std::int64_t time, const RowShape& shape, const at::Tensor& positions = {});

  /// Whether causal order says it all. The rest below is for windows and segments of which it does not.
  bool is_causal(Reach reach) const {
    return !segments_.defined() && (reach.window == 0 || reach.window >= time_) &&
           (reach.chunk == 0 || reach.chunk >= time_);
  }

  /// Added to the scores: 0 where a query sees a key, else -infinity; [batch or 1, 1, time, time]. Kept for the layers
  /// after.
  const at::Tensor& mask(Reach reach, const at::TensorOptions& options) const;

  /// [batch, time], or undefined where causal order says it all.
  const at::Tensor& segments() const { return segments_; }

  /// Where each sequence begins among all tokens of the batch, and the end: int32 [sequences + 1]. Padding counts as a
  /// sequence. Kept; with it the longest one.
  const at::Tensor& starts(std::int64_t batch, at::Device device) const;
  std::int64_t longest() const { return longest_; }

 private:
  at::Tensor segments_, positions_;
  std::int64_t time_;
  mutable std::map<std::pair<Reach, at::ScalarType>, at::Tensor> masks_;
  mutable at::Tensor starts_;
  mutable std::int64_t longest_ = 0;
};

/// Attention of tokens that see each other as `visibility` says, within `reach`, by the kernel that the device has for
/// it. Queries [batch, time, heads, head_dim] -> the same; keys and values may have fewer heads. Noted.
at::Tensor attend_visible(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                          const Visibility& visibility, const Reach& reach, std::optional<double> scale);

/// What the layers of one forward have in common. No tensor's holder in the sense of a unit, which would cast the
/// tables.
struct Surroundings {
  RopeTables rope;
  std::shared_ptr<const Visibility> visibility;
  RopeTables window_rope;          ///< of layers with a window; undefined: as all
  at::Tensor temperature;          ///< fp32 [batch or 1, time, 1, 1]: DecoderConfig's; undefined: none
  at::Tensor counted;              ///< [batch, time] bool: no padding; undefined: all
  KeyValueCache* cache = nullptr;  ///< of a generation, which takes no gradients
};

/// What a layer's queries do with its keys and values, whatever these were made from.
class Mixing {
 public:
  Mixing(const DecoderConfig& config, std::int64_t layer);

  /// queries [batch, time, heads, head_dim], keys with kv_heads, values of any width -> [batch, time, heads * width].
  /// `sinks` [heads]: a score of each head that no token has; undefined: none.
  at::Tensor mix(at::Tensor queries, at::Tensor keys, at::Tensor values, const Surroundings& around,
                 const at::Tensor& sinks = {}) const;
  std::int64_t window() const { return reach_.window; }

 private:
  at::Tensor attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const Surroundings& around, const at::Tensor& sinks) const;
  at::Tensor attend_cached(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                           const Surroundings& around, const at::Tensor& sinks) const;

  std::int64_t layer_;
  Reach reach_;
  double cap_;                   ///< of scores; 0: none
  std::optional<double> scale_;  ///< of scores; unset: 1 / sqrt(head_dim)
};

/// Attention of any kind, as the layer knows it.
class AnyAttention : public torch::nn::Module {
 public:
  /// [batch, time, width] -> the same
  virtual at::Tensor forward(const at::Tensor& input, const Surroundings& around) = 0;
};

class AttentionImpl final : public AnyAttention {
 public:
  AttentionImpl(const DecoderConfig& config, std::int64_t layer);

  at::Tensor forward(const at::Tensor& input, const Surroundings& around) override;

 private:
  std::int64_t heads_, kv_heads_, head_dim_;
  Mixing mixing_;
  bool norms_whole_;  ///< of all heads together
  double clip_;       ///< the most that an element of queries, keys and values is; 0: any
  Projection q_proj_{nullptr}, k_proj_{nullptr}, v_proj_{nullptr}, o_proj_{nullptr};
  Projection qkv_proj_{nullptr};               ///< in place of the first three
  RmsNorm q_norm_{nullptr}, k_norm_{nullptr};  ///< null unless the config has them
  bool turns_;
  std::optional<double> turned_norm_eps_;  ///< of queries and keys that turned
  at::Tensor sinks_;                       ///< [heads]; undefined: none
};
TORCH_MODULE(Attention);

/// As the config says.
std::shared_ptr<AnyAttention> make_attention(const DecoderConfig& config, std::int64_t layer);

}  // namespace sealift::trainer
