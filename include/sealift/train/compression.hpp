// SPDX-License-Identifier: Apache-2.0
// What a job may say about sending, or keeping, less than it computes with, as plain values.
// Below `policy`, which holds them; `codec`, `stored_codec`, `transport` and `power_sgd` in the room `flat` do it.
// Everything is off by default, since all of it changes the numbers.
#pragma once

#include <cstdint>

namespace sealift::train {

/// How gradients travel. PyTorch's DDP communication hooks, which are here for fsdp and hsdp too.
enum class GradientCompression {
  None,
  Fp16,      ///< `fp16_compress_hook`: half the bytes of fp32; values beyond 65504 become infinite
  Bf16,      ///< `bf16_compress_hook`: half the bytes, fp32's range, 8 bits of precision
  PowerSgd,  ///< `powerSGD_hook`: two factors of low rank instead of each large matrix; ddp only
};

/// How shards travel in a gather.
enum class GatherCompression {
  None,
  Int8,  ///< in blocks of 256 with a scale each, as ZeRO++'s quantized weights: about a quarter of fp32's bytes
  Fp8,   ///< the same in float8_e4m3fn: as many bytes, small values of a block keep three bits of precision
};

/// What a rank keeps of a frozen parameter, and sends in a gather: only a unit that is in use is whole.
enum class StoredAs {
  Plain,  ///< its elements
  Int8,   ///< `GatherCompression::Int8`'s blocks, which here never cross parameters or depend on the world
  Fp8,    ///< the same in float8_e4m3fn
  Nf4,    ///< QLoRA's: 4 bits in blocks of 64, whose scales are 8 bits in blocks of 256; bitsandbytes' values
};

/// PyTorch's `PowerSGDState`, with its names and defaults.
struct PowerSgdOptions {
  std::int64_t matrix_approximation_rank = 1;  ///< columns of a factor; usually 1 to 4
  std::int64_t start_iteration = 1000;   ///< reductions before this one are plain; a tenth of the steps is advised
  double min_compression_rate = 2;       ///< a matrix [n, m] is compressed if (n + m) * rank * this < n * m
  bool use_error_feedback = true;        ///< what a step did not send is added to the next; a copy of the gradients
  bool warm_start = true;                ///< begin with the factors of the step before
  double orthogonalization_epsilon = 0;  ///< added to the norm of a factor's column; 0: columns of zeros stay zero
  std::uint32_t random_seed = 0;         ///< of the first factors; the same on all ranks
  bool batch_tensors_with_same_shape = false;  ///< multiply them together: fewer kernels, a copy of the gradients

  bool operator==(const PowerSgdOptions&) const = default;
};

struct Compression {
  GradientCompression gradients = GradientCompression::None;
  GatherCompression gather = GatherCompression::None;
  PowerSgdOptions power_sgd = {};  ///< used by `GradientCompression::PowerSgd`

  bool operator==(const Compression&) const = default;
};

}  // namespace sealift::train
