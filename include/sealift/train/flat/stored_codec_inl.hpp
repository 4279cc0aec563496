// SPDX-License-Identifier: Apache-2.0
// The bodies of stored_codec.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/stored_codec.hpp>

namespace sealift::train {

SEALIFT_BODY std::int64_t alignment_of(StoredAs stored) {
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

SEALIFT_BODY std::shared_ptr<StoredCodec> make_stored_codec(StoredAs stored) {
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

SEALIFT_BODY std::int64_t stored_bytes(StoredAs stored, std::int64_t numel, at::ScalarType dtype) {
  if (stored == StoredAs::Plain) return numel * static_cast<std::int64_t>(c10::elementSize(dtype));
  const auto align = alignment_of(stored), whole = (numel + align - 1) / align * align;
  return stored == StoredAs::Nf4 ? Nf4Codec::message_bytes(whole) : Int8Codec::message_bytes(whole);
}

}  // namespace sealift::train
