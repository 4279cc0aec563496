// SPDX-License-Identifier: Apache-2.0
// Which codec keeps the shard of a frozen flat. `flat_param` makes one for each such flat.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/nf4_codec.hpp>

namespace sealift::train {

/// Elements at which parameters start and shards end in a flat that is stored so.
std::int64_t alignment_of(StoredAs stored);

/// A codec for one flat; null for `Plain`.
std::shared_ptr<StoredCodec> make_stored_codec(StoredAs stored);

/// What a parameter of `numel` elements of `dtype` takes when it is stored so, over all ranks that shard it, without
/// padding at the ends of parameters and shards, in bytes.
std::int64_t stored_bytes(StoredAs stored, std::int64_t numel, at::ScalarType dtype);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/stored_codec_inl.hpp>
#endif
