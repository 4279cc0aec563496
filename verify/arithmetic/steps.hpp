// SPDX-License-Identifier: Apache-2.0
// Runs an ArithmeticJob on one device, without communication, and digests everything that it computes.
// The measuring half of `same_bits` and `heat`; `judge` compares what comes out.
// Composed of the trainer's own layers and optimizer, called unit by unit so that each output can be seen.
#pragma once

#include "verify/arithmetic/job.hpp"

#include <torch/torch.h>

#include <chrono>

namespace sealift::verify {

/// A bit that a test flips: what faulty hardware would do. Production passes none.
struct FlippedBit {
  Place where;               ///< of phase Weights, Forward or Gradient
  std::int64_t element = 0;  ///< modulo the size of the unit's first weight, or of its output
  int bit = 0;               ///< from the lowest, modulo the dtype's width
};

/// The digests of `job` on `device`, one for each of `places_of(job)`: 16 hexadecimal digits. A digest is the sum
/// modulo 2^64 of each element's bits times an odd number that depends on its place, so one flipped bit always shows,
/// and the order of the sum never does. On a CPU one thread computes.
std::vector<std::string> digests_of_steps(const ArithmeticJob& job, at::Device device,
                                          const std::optional<FlippedBit>& fault = {});

/// The first place where two lists of digests differ.
std::optional<std::size_t> first_difference(const std::vector<std::string>& one, const std::vector<std::string>& other);

struct HeatFault {
  std::int64_t round = 1;
  FlippedBit bit;
};

struct Repeated {
  std::vector<std::string> digests;  ///< of the first run
  std::int64_t runs = 0;             ///< with the first, and one that differs
  std::optional<std::size_t> again;  ///< the first place where a run differs from the first one
};

/// Runs `job` twice, and again until `duration` has passed; ends at the first difference. `fault`: its bit is flipped
/// in that run, counted from 1.
Repeated repeat_steps(const ArithmeticJob& job, at::Device device, std::chrono::duration<double> duration,
                      const std::optional<HeatFault>& fault = {});

/// The job for a device: small, so that a CPU does it in a second; larger on a GPU, so that its matrix units are used.
ArithmeticJob quick_arithmetic_job(at::Device device, std::uint64_t seed);

/// One that keeps a device busy.
ArithmeticJob heavy_arithmetic_job(at::Device device, std::uint64_t seed);

/// Devices that must compute the same bits have the same text: a GPU's name and capability; a CPU's model and the
/// instruction set that LibTorch's kernels use.
std::string kind_of_device(at::Device device);

/// Repeats `job` until `duration` has passed, at least two rounds, and compares each with the first; on a CPU by
/// `hands` threads at once. Returns what `judge_heat` takes; ends at the first difference.
nlohmann::json burn_device(const ArithmeticJob& job, at::Device device, std::chrono::duration<double> duration,
                           std::int64_t hands, const std::optional<HeatFault>& fault = {});

}  // namespace sealift::verify
