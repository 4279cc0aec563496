// SPDX-License-Identifier: Apache-2.0
// Which codec keeps the shard of a frozen flat. `flat_param` makes one for each such flat.
#pragma once

#include <sealift/train/flat/nf4_codec.hpp>

namespace sealift::train {

/// Elements at which parameters start and shards end in a flat that is stored so.
inline std::int64_t alignment_of(StoredAs stored) {
  switch (stored) {
    case StoredAs::Plain:
      return FlatLayout::kAlign;
    case StoredAs::Nf4:
      return Nf4Codec::kBlock;
    case StoredAs::Int8:
    case StoredAs::Fp8:
      return Int8Codec::kBlock;
  }
  TORCH_CHECK(false, "unknown storage ", static_cast<int>(stored));
}

/// A codec for one flat; null for `Plain`.
inline std::shared_ptr<StoredCodec> make_stored_codec(StoredAs stored) {
  switch (stored) {
    case StoredAs::Plain:
      return nullptr;
    case StoredAs::Nf4:
      return std::make_shared<Nf4Codec>();
    case StoredAs::Int8:
      return std::make_shared<StoredBlocks<Int8Codec>>();
    case StoredAs::Fp8:
      return std::make_shared<StoredBlocks<Fp8Codec>>();
  }
  TORCH_CHECK(false, "unknown storage ", static_cast<int>(stored));
}

/// What a parameter of `numel` elements of `dtype` takes when it is stored so, over all ranks that shard it, without
/// padding at the ends of parameters and shards, in bytes.
inline std::int64_t stored_bytes(StoredAs stored, std::int64_t numel, at::ScalarType dtype) {
  if (stored == StoredAs::Plain) return numel * static_cast<std::int64_t>(c10::elementSize(dtype));
  const auto align = alignment_of(stored), whole = (numel + align - 1) / align * align;
  return stored == StoredAs::Nf4 ? Nf4Codec::message_bytes(whole) : Int8Codec::message_bytes(whole);
}

}  // namespace sealift::train
