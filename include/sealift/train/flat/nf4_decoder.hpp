// SPDX-License-Identifier: Apache-2.0
// The seam for kernels that decode NF4 on a kind of device in one pass, where tensors' operations take many.
// Above nothing; `nf4_codec` asks, a program registers what it has. The values are those of nf4.hpp to the bit: a
// device without a decoder, or one that does not take a part, goes that way.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace sealift::train {

/// A part of a parameter, as it is kept. All on one device, without gaps.
struct EncodedNf4 {
  at::Tensor codes;              ///< uint8 [n / 2 rounded up], the first of two elements in the high half
  at::Tensor scale_codes;        ///< uint8 [n / 64 rounded up]
  at::Tensor code, map;          ///< fp32 [16], [256]: what the codes of elements and of scales mean
  at::Tensor statistics;         ///< fp32: of the parameter the mean scale, then the largest of each 256 scales
  std::int64_t first_block = 0;  ///< of 64 elements: where the part begins in its parameter
};

/// Writes the elements into `out` [n]; false, and nothing done, for what it does not take.
using DecodeNf4 = std::function<bool(const EncodedNf4& part, const at::Tensor& out)>;

/// Makes `decode` what devices of `type` are asked with; an empty one takes that away. Thread-safe.
void register_nf4_decoder(at::DeviceType type, DecodeNf4 decode);

/// Asks the decoder of `out`'s device; false where there is none, too.
bool decode_nf4(const EncodedNf4& part, const at::Tensor& out);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/nf4_decoder_inl.hpp>
#endif
