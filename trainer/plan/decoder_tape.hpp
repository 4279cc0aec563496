// SPDX-License-Identifier: Apache-2.0
// What a decoder's layers, its loss and its embedding hold in forward and backward: its operations, played on a tape.
// Above tape, below memory, which calls these between the engine's gathers.
// Follows models/decoder_layer.hpp line by line, temporaries included, so a change there shows in memory_plan_test.
#pragma once

#include "trainer/plan/model_shape.hpp"
#include "trainer/plan/tape.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace sealift::trainer::plan {

/// Whose kernels compute: they differ in what they keep.
enum class Kernels { Host, Cuda };

/// One micro-batch of one rank.
struct Batch {
  std::int64_t rows = 1, length = 0;  ///< tokens of a row
  std::int64_t labels = 0;            ///< tokens of the micro-batch that count; 0: all but the last of each row
  std::int64_t compute_bytes = 4;     ///< of an activation
  Kernels kernels = Kernels::Host;
  bool packed = false;  ///< rows hold several examples that do not see each other

  std::int64_t tokens() const { return rows * length; }
  std::int64_t counted() const { return labels > 0 ? labels : rows * (length - 1); }
};

/// Whether attention of layer `number` has a mask of length × length: as models/attention.hpp decides.
bool has_mask(const DecoderShape& shape, const Batch& batch, std::int64_t number);

class DecoderTape {
 public:
  DecoderTape(Tape& tape, const ModelShape& shape, const Batch& batch) : t_(&tape), shape_(&shape), batch_(batch) {}

  /// The token embedding: hidden states [tokens, width].
  Tape::Id embed();
  /// A layer over `x`, which `needs` a gradient or not; the layer's own reference to x stays the caller's.
  Tape::Id layer(Tape::Id x, std::int64_t number, bool needs);
  /// The last norm, the head and the log-probabilities of labels; its backward is begun by `backward`.
  void loss(Tape::Id x, bool needs);
  /// The forward is over, and with recomputation the backward: masks are held by what attention saved of them only.
  void drop_masks();

  bool has_masks = false;  ///< a layer's forward again: those of the first one are still there

 private:
  struct Linear {
    std::int64_t in = 0, out = 0;
    bool bias = false, adapted = true;
  };
  bool adapts() const { return shape_->lora_rank > 0; }
  bool on_host() const { return batch_.kernels == Kernels::Host; }
  std::int64_t of(std::int64_t elements) const { return elements * batch_.compute_bytes; }
  void weight(std::int64_t numel);

  Tape::Id norm(Tape::Id x, std::int64_t rows, std::int64_t width, bool needs, bool has_weight = true);
  Tape::Id layer_norm(Tape::Id x, std::int64_t rows, std::int64_t width, bool needs);
  /// The one of the family, or x itself where it has none there.
  Tape::Id norm_if(bool has, Tape::Id x, bool needs);
  Tape::Id clipped(Tape::Id x);
  /// Times a number; x is dropped.
  Tape::Id scaled(Tape::Id x, bool needs);
  Tape::Id linear(Tape::Id x, const Linear& how, std::int64_t rows, bool needs);
  Tape::Id adapted(Tape::Id x, const Linear& how, std::int64_t rows, bool needs);
  std::vector<Tape::Id> project(Tape::Id x, const std::vector<Linear>& hows, std::int64_t rows, bool needs);
  std::vector<Tape::Id> joined(Tape::Id x, const std::vector<Linear>& hows, std::int64_t rows, bool needs);
  std::int64_t rank_of(const Linear& how) const { return adapts() && how.adapted ? shape_->lora_rank : 0; }
  std::pair<Tape::Id, Tape::Id> rotate(Tape::Id queries, Tape::Id keys, bool together);
  /// Slices of `whole`, one projection's output: they take no memory, and their gradients become its own.
  std::vector<Tape::Id> slices(Tape::Id whole, std::size_t count);
  std::int64_t bytes_of_heads(std::int64_t heads) const {
    return of(batch_.tokens() * heads * shape_->decoder.head_dim);
  }
  /// `fused`: what v is a slice of, or none.
  Tape::Id attend(Tape::Id q, Tape::Id k, Tape::Id v, std::int64_t number, std::optional<Tape::Id> fused);
  /// No family has both a cap and fused projections.
  Tape::Id attend_capped(Tape::Id q, Tape::Id k, Tape::Id v);
  Tape::Id add(Tape::Id x, Tape::Id change, bool needs);
  Tape::Id attention(Tape::Id y, std::int64_t number, bool needs);
  Tape::Id latent_attention(Tape::Id y, std::int64_t number, bool needs);
  Tape::Id attend_to_sinks(Tape::Id q, Tape::Id k, Tape::Id v, std::int64_t number);
  /// The mask of layer `number`, which all layers of its reach share; none where its kernel needs none.
  std::optional<Tape::Id> mask(std::int64_t number);
  std::int64_t rows_of_mask(std::int64_t number) const;
  /// A tensor of `bytes` made of others, each of which gets a gradient of its own size; nothing is kept.
  Tape::Id made_of(const std::vector<Tape::Id>& from, std::int64_t bytes);
  Tape::Id mlp(Tape::Id y, bool needs, std::int64_t hidden_width);
  Tape::Id experts(Tape::Id y, bool needs);
  Tape::Id shared_experts(Tape::Id y, Tape::Id answers, bool needs);
  Tape::Id router_logits(Tape::Id y, bool needs);
  /// What backward keeps of a router, for the caller to drop.
  std::vector<Tape::Id> route(Tape::Id y, bool needs);
  /// Each token's rows, in the order of their experts.
  Tape::Id rows_of_experts(Tape::Id y, bool needs);

  Tape* t_;
  const ModelShape* shape_;
  Batch batch_;
  std::map<std::pair<std::int64_t, std::int64_t>, Tape::Id> masks_;  ///< by window and chunk
};

}  // namespace sealift::trainer::plan
