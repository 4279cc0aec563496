// SPDX-License-Identifier: Apache-2.0
// The device of one rank: which it is, why, and CUDA loaded when it is one of CUDA's.
// First in a rank's run: before the model is made, and before anything asks LibTorch for a GPU, as it remembers the
// answer. The program links LibTorch's CPU half alone, so it also starts where there is no driver; libtorch_cuda and
// NCCL come with the plug-in cuda_half.cpp, which is loaded here.
#pragma once

#include "trainer/ranks/cuda_driver.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

namespace sealift::trainer {

/// A choice that was made by looking only.
struct DeviceChoice {
  at::Device device = at::kCPU;
  std::string reason;             ///< why the CPU, for people; empty for a CUDA device
  std::optional<CudaDevice> gpu;  ///< what the CUDA device is
};

/// The device of rank `launch.local_rank` of this host. `wanted` is auto, cpu or cuda; auto is CUDA when `driver` shows
/// a device. Throws std::invalid_argument for another word, c10::Error when cuda is wanted and missing, or when there
/// are more local ranks than devices. A launcher may show each rank one device of its own: with one device every rank
/// takes that, and `check_devices` finds ranks that share it.
DeviceChoice choose_device(const std::string& wanted, const CudaDriver& driver, const train::Launch& launch);

/// What `load_cuda` looks for.
inline constexpr const char* kCudaHalf = "libsealift_train_cuda.so";

/// Loads LibTorch's CUDA half and makes known its NCCL, to the core, and its attention by lengths (by_length.hpp);
/// returns what is missing, or an empty text. `library`: the plug-in, as dlopen takes it.
std::string load_cuda(const std::string& library = kCudaHalf);

/// The device of one rank, ready to be used.
struct RankDevice {
  at::Device device = at::kCPU;
  std::string line;                    ///< for people: what it is, or why it is the CPU; then a line for each note
  std::string uuid;                    ///< of a GPU; empty for the CPU
  nlohmann::ordered_json description;  ///< for result.json
};

/// Chooses, loads CUDA if the choice needs it, makes the device the current one and computes something small on it.
/// auto falls back to the CPU when CUDA cannot be loaded, the driver is too old for it or the card computes nothing,
/// and the line says so.
RankDevice set_up_device(const std::string& wanted, const train::Launch& launch);

/// Makes results comparable with those of other devices and of another run on the same one: on CUDA, fp32 products
/// without TF32 and deterministic kernels, which `description` then says. Before the first computation.
void compute_reproducibly(RankDevice& device);

/// The variable that lets ranks of sealift-train share a GPU where it is "yes": a door for tests of NCCL on one card,
/// and for nothing else.
inline constexpr const char* kSharedDeviceForTests = "SEALIFT_TEST_SHARED_DEVICE";

/// Whether that door is open.
bool shares_devices_for_tests();

/// Throws on all ranks, naming ranks, when some are on CPUs and some on GPUs, or when two share a GPU and may not
/// (`may_share`: all ranks say the same). Collective over the store of `world`, and before groups are made, since NCCL
/// would wait for ranks that do not come.
void check_devices(const RankDevice& mine, const train::Launch& launch, const train::World& world,
                   bool may_share = false);

}  // namespace sealift::trainer
