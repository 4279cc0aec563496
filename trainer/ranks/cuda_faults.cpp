// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/cuda_faults.hpp"

#include "trainer/ranks/loaded_library.hpp"

#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/torch.h>

#include <cstdlib>
#include <map>

namespace sealift::trainer {
namespace {

/// The oldest driver that runs each CUDA of this major number and the minor ones after it.
std::string oldest_driver(std::int64_t major) {
  static const std::map<std::int64_t, std::string> known{{11, "450.80.02"}, {12, "525.60.13"}, {13, "580"}};
  const auto found = known.find(major);
  return found == known.end() ? "one for CUDA " + std::to_string(major) : found->second;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string driver_fault(const CudaDriver& driver, std::int64_t runtime) {
  const auto needed = runtime / 1000, runs = static_cast<std::int64_t>(std::atoll(driver.cuda.c_str()));
  if (driver.cuda.empty() || runs >= needed) return {};
  return c10::str("the driver", driver.version.empty() ? "" : " " + driver.version, " runs CUDA ", driver.cuda,
                  " and LibTorch is for ", needed, ".", runtime % 1000 / 10, ": install driver ", oldest_driver(needed),
                  " or newer, or a LibTorch for CUDA ", runs);
}

std::string load_fault(const std::string& error) {
  const auto said = "CUDA's half cannot be loaded (" + error + "): ";
  if (error.find("libcudnn") == std::string::npos) return said + "install a LibTorch with CUDA beside the program";
  return said + "LibTorch's own cuDNN is missing or another one is found before it; install LibTorch whole, and take " +
         "folders with a cuDNN out of LD_LIBRARY_PATH and LD_PRELOAD";
}

std::string first_kernel_fault(c10::Device device) {
  try {
    const auto numbers = at::arange(8, at::kFloat);
    const auto there = numbers.to(device).mul(2).add(1).to(at::kCPU);
    return there.equal(numbers.mul(2).add(1)) ? "" : "its first kernel gives other numbers than the CPU's";
  } catch (const c10::Error& error) {
    return first_line(error.what_without_backtrace());
  }
}

std::string card_fault(const CudaDevice& card, const std::string& first_kernel) {
  if (first_kernel.empty()) return {};
  return "LibTorch does not compute on it (capability " + card.capability + ": " + first_kernel +
         "): install a LibTorch that is built for this card";
}

std::string card_note(const CudaDevice& card) {
  const auto major = std::atoi(card.capability.c_str());
  if (major == 0 || major >= 8) return {};
  return "note: " + card.name + " has capability " + card.capability +
         ", which is before flash and cuDNN attention and units for bf16 (8.0): the same is computed by slower " +
         "kernels; of the half precisions take fp16";
}

Cudnn find_cudnn() {
  const auto& hooks = at::detail::getCUDAHooks();
  if (!hooks.compiledWithCuDNN()) return {};
  return {
      .built = hooks.versionCuDNN(), .loaded = hooks.versionRuntimeCuDNN(), .library = loaded_library("libcudnn.so")};
}

std::string cudnn_version(std::int64_t number) {
  return c10::str(number / 10000, ".", number / 100 % 100, ".", number % 100);
}

std::string cudnn_note(const Cudnn& cudnn) {
  if (cudnn.loaded == 0) return "note: LibTorch has no cuDNN: attention runs by other kernels, slower and as right";
  if (cudnn.loaded >= cudnn.built) return {};
  return "note: cuDNN " + cudnn_version(cudnn.loaded) + " (" + cudnn.library + ") is loaded before the " +
         cudnn_version(cudnn.built) + " that LibTorch is built with: attention may run by other kernels, slower and " +
         "as right; take that folder out of LD_LIBRARY_PATH";
}

}  // namespace sealift::trainer
