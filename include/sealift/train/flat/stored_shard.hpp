// SPDX-License-Identifier: Apache-2.0
// The seam for shards of frozen flats that are kept encoded: encoded once, when they get their first values, and
// gathered as they lie. Blocks start again at every parameter and shards end between blocks, so values do not depend on
// the world.
#pragma once

#include <sealift/train/flat/codec.hpp>
#include <sealift/train/flat/fill_shard.hpp>

namespace sealift::train {

/// Fills `out` [n], in a parameter's own dtype, with elements [begin, begin + n) of parameter `index` of a flat.
using ReadRange = std::function<void(std::size_t index, std::int64_t begin, at::Tensor out)>;

/// A codec whose message a rank keeps instead of its shard.
class StoredCodec : public Codec {
 public:
  /// The message for this rank's shard of `layout`, of elements with `options`, which `read` gives in pieces.
  /// Collective over `groups`; `unit` is for messages.
  virtual at::Tensor store(const FlatLayout& layout, const ReadRange& read, const at::TensorOptions& options,
                           Groups& groups, const std::string& unit) = 0;

  at::Tensor encode(const at::Tensor& shard, const at::TensorOptions& options) const final {
    return shard.to(options.device(), /*non_blocking=*/true);
  }
  bool is_whole() const final { return false; }
};

/// `Blocks` (an Int8Codec or Fp8Codec) applied once.
template <class Blocks>
class StoredBlocks final : public StoredCodec {
 public:
  at::Tensor store(const FlatLayout& layout, const ReadRange& read, const at::TensorOptions& options, Groups& groups,
                   const std::string&) override {
    const auto shard = torch::zeros({layout.shard_numel}, options);
    for (std::size_t i = 0; i < layout.placements.size(); ++i) {
      const auto part = layout.fragment(i, groups.shard.rank());
      if (part.numel > 0) read(i, part.in_parameter, shard.narrow(0, part.in_shard, part.numel));
    }
    return blocks_.encode(shard, options);
  }
  void decode(at::Tensor whole, const at::Tensor& messages, std::int64_t ranks) const override {
    blocks_.decode(std::move(whole), messages, ranks);
  }

 private:
  Blocks blocks_;
};

}  // namespace sealift::train
