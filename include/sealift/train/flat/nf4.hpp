// SPDX-License-Identifier: Apache-2.0
// NF4 with double quantization: the very values of bitsandbytes' CPU kernels
// (quantize_4bit(blocksize=64, quant_type="nf4", compress_statistics=True)).
//   x -> code / 15 of 16 quantiles of a normal distribution, times the block's scale; 64 elements a block
//   scale -> 8 bits of a dynamic map, times the largest of 256 blocks, plus the mean of all scales of the parameter
// Arithmetic alone: knows neither flats nor ranks. `nf4_codec` says where the numbers lie.
// Mirrored by trainer/plan/model_shape.cpp (bytes of the encoding): change both.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <array>
#include <vector>

namespace sealift::train::nf4 {

inline constexpr std::int64_t kBlock = 64;       ///< elements of one scale; even, so that no byte is cut
inline constexpr std::int64_t kGroup = 256;      ///< scales of one largest
inline constexpr std::int64_t kPiece = 1 << 21;  ///< elements worked on at a time

constexpr std::int64_t blocks_of(std::int64_t numel) {
  return (numel + kBlock - 1) / kBlock;
}
constexpr std::int64_t groups_of(std::int64_t blocks) {
  return (blocks + kGroup - 1) / kGroup;
}

inline constexpr std::array<float, 16> kCode{
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/// Codes [n / 2 rounded up] and scales [n / kBlock rounded up] of `values` [n]; n is cut only at a parameter's end.
/// The operations are bitsandbytes' own, whose last, shorter block is divided where others are multiplied.
void quantize(const at::Tensor& values, at::Tensor codes, at::Tensor scales);

/// The reverse, into `out` [n] of any floating dtype, on any device.
void dequantize_by_tensors(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out, const at::Tensor& code);

/// The same; a loop on the CPU, elsewhere `dequantize_by_tensors`.
void dequantize(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out, const at::Tensor& code);

/// bitsandbytes' create_dynamic_map(): 8 bits of which the leading zeros are a decimal exponent. [256], ascending
at::Tensor dynamic_map();

/// The entry of `dynamic_map` for each of 65536 bins of [-1, 1].
std::vector<std::uint8_t> nearest_entries();

/// The entry for one `value` of a group whose largest is `most`. By those bins, as bitsandbytes does it: its rounding
/// differs from that of the nearest entry.
std::uint8_t quantize_scale(float value, float most);

/// The mean of `values` as LibTorch sums it on one thread; bitsandbytes' own depends on its number of threads.
at::Tensor mean_by_one_thread(const at::Tensor& values);

}  // namespace sealift::train::nf4

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/nf4_inl.hpp>
#endif
