// SPDX-License-Identifier: Apache-2.0
// Choosing a device, loading CUDA, and comparing the ranks' choices.
// See device.hpp. Looking (the driver), deciding (a pure function) and acting (dlopen) are apart, so that all but the
// GPU itself is tested without one. A rank decides alone, from its own host; only the comparison at the end sees all
// ranks.
#include "trainer/ranks/device.hpp"

#include "trainer/ranks/cuda_faults.hpp"
#include "trainer/ranks/cuda_half.hpp"

#include <ATen/DeviceAccelerator.h>
#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <cstdlib>
#include <iostream>

namespace sealift::trainer {
namespace {

nlohmann::ordered_json describe_gpu(const DeviceChoice& choice, const CudaDriver& driver) {
  return {{"type", "cuda"},
          {"index", choice.device.index()},
          {"name", choice.gpu->name},
          {"capability", choice.gpu->capability},
          {"memory_bytes", choice.gpu->bytes},
          {"uuid", choice.gpu->uuid},
          {"driver", driver.version},
          {"driver_cuda", driver.cuda}};
}

nlohmann::ordered_json describe_cudnn(const Cudnn& cudnn) {
  if (cudnn.loaded == 0) return nullptr;
  return {
      {"version", cudnn_version(cudnn.loaded)}, {"built_with", cudnn_version(cudnn.built)}, {"library", cudnn.library}};
}

/// Loads CUDA and tries the card; why it cannot be used, or an empty text.
std::string start_cuda(const DeviceChoice& choice, const CudaDriver& driver) {
  if (auto missing = load_cuda(); !missing.empty()) return missing;
  const auto& hooks = at::detail::getCUDAHooks();
  if (hooks.hasCUDART()) {
    if (auto fault = driver_fault(driver, hooks.versionCUDART()); !fault.empty()) return fault;
  }
  if (!at::hasCUDA()) return "LibTorch does not accept the device that the driver shows: install a LibTorch with CUDA";
  try {
    c10::impl::getDeviceGuardImpl(at::kCUDA)->setDevice(choice.device);
  } catch (const c10::Error& error) {  // taken by another process alone, or at fault
    const std::string text = error.what_without_backtrace();
    return "it cannot be opened: " + text.substr(0, text.find('\n'));
  }
  return card_fault(*choice.gpu, first_kernel_fault(choice.device));
}

RankDevice on_cpu(const std::string& reason) {
  return {.line = "device cpu: " + reason,
          .description = {{"type", "cpu"}, {"reason", reason}, {"vector_units", at::get_cpu_capability()}}};
}

/// What is wrong with the ranks' devices, each "cpu" or "gpu UUID"; empty if nothing is. Where `share`, ranks may have
/// one GPU together.
std::string find_fault(const std::vector<std::string>& devices, bool share) {
  std::vector<std::int64_t> on_cpus, on_gpus;
  std::map<std::string, std::vector<std::int64_t>> by_uuid;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const bool gpu = devices[rank].starts_with("gpu ");
    (gpu ? on_gpus : on_cpus).push_back(static_cast<std::int64_t>(rank));
    if (gpu) by_uuid[devices[rank].substr(4)].push_back(static_cast<std::int64_t>(rank));
  }
  if (!on_cpus.empty() && !on_gpus.empty()) {
    return train::name_ranks(on_cpus) + " would train on CPUs and " + train::name_ranks(on_gpus) + " on GPUs";
  }
  for (const auto& [uuid, ranks] : by_uuid) {
    if (ranks.size() > 1 && !uuid.empty() && !share)
      return train::name_ranks(ranks) + " would share the device " + uuid;
  }
  return {};
}

}  // namespace

DeviceChoice choose_device(const std::string& wanted, const CudaDriver& driver, const train::Launch& launch) {
  if (wanted != "auto" && wanted != "cpu" && wanted != "cuda") {
    throw std::invalid_argument("device is '" + wanted + "'; use auto, cpu or cuda");
  }
  if (wanted == "cpu") return {.reason = "as device = cpu says"};
  if (!driver.missing.empty()) {
    TORCH_CHECK(wanted == "auto", "device is cuda, but ", driver.missing, "; use --device cpu, or auto for either");
    return {.reason = driver.missing};
  }
  const auto devices = static_cast<std::int64_t>(driver.devices.size());
  TORCH_CHECK(launch.local_rank < devices || devices == 1, "this host has ", launch.local_world_size, " ranks but ",
              devices, " CUDA devices, and LOCAL_RANK is ", launch.local_rank,
              "; start one rank a device, see CUDA_VISIBLE_DEVICES, or use --device cpu");
  const auto index = launch.local_rank < devices ? launch.local_rank : 0;
  return {.device = {at::kCUDA, static_cast<c10::DeviceIndex>(index)},
          .gpu = driver.devices[static_cast<std::size_t>(index)]};
}

std::string load_cuda(const std::string& library) {
  // By now and for all: kernels and hooks register themselves with LibTorch, and other libraries may need them.
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!opened) return load_fault(dlerror());
  auto* give = reinterpret_cast<GiveCudaHalf*>(dlsym(opened, kGiveCudaHalf));
  if (!give) return library + " is not this program's CUDA half; install both from one build";
  CudaHalf half;
  give(&half);
  train::register_engine(at::kCUDA, "nccl", std::move(half.nccl));
  register_attention_by_length(at::kCUDA, half.attends_by_length);
  return {};
}

RankDevice set_up_device(const std::string& wanted, const train::Launch& launch) {
  const auto driver = wanted == "auto" || wanted == "cuda" ? find_cuda_driver() : CudaDriver{};
  const auto choice = choose_device(wanted, driver, launch);
  if (choice.device.is_cpu()) return on_cpu(choice.reason);

  const auto missing = start_cuda(choice, driver);
  if (!missing.empty()) {
    TORCH_CHECK(wanted == "auto", "device is cuda, but ", missing, "; or use --device cpu");
    return on_cpu(choice.gpu->name + " is here, but " + missing);
  }
  RankDevice device{.device = choice.device,
                    .line = "device " + choice.device.str() + ": " + choice.gpu->name + ", capability " +
                            choice.gpu->capability + ", driver " +
                            (driver.version.empty() ? "for CUDA " + driver.cuda : driver.version),
                    .uuid = choice.gpu->uuid,
                    .description = describe_gpu(choice, driver)};
  const auto cudnn = find_cudnn();
  device.description["cudnn"] = describe_cudnn(cudnn);
  for (const auto& note : {card_note(*choice.gpu), cudnn_note(cudnn)}) {
    if (!note.empty()) device.line += "\n" + note;
  }
  return device;
}

void compute_reproducibly(RankDevice& device) {
  if (!device.device.is_cuda()) return;
  // Read by cuBLAS when it starts; without it deterministic products are refused.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  auto& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setDeterministicFillUninitializedMemory(false);  // a debugging aid that comes with the next line
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  device.description["numerics"] = {{"tf32", false}, {"deterministic_kernels", true}};
}

bool shares_devices_for_tests() {
  const char* value = std::getenv(kSharedDeviceForTests);
  return value != nullptr && std::string_view(value) == "yes";
}

void check_devices(const RankDevice& mine, const train::Launch& launch, const train::World& world, bool may_share) {
  if (world.size == 1) return;
  c10d::PrefixStore store("devices", world.store);
  store.set(std::to_string(world.rank), mine.device.is_cuda() ? "gpu " + mine.uuid : "cpu");
  if (world.rank == 0) {  // one rank reads all, so that thousands of ranks ask for one value each
    std::vector<std::string> devices;
    for (std::int64_t rank = 0; rank < world.size; ++rank) devices.push_back(store.get_to_str(std::to_string(rank)));
    store.set("verdict", find_fault(devices, may_share));
  }
  const auto fault = store.get_to_str("verdict");
  TORCH_CHECK(fault.empty(), fault, "; this host has ", launch.local_world_size,
              " ranks: start one for each device, or use --device cpu everywhere");
  if (!may_share || !mine.device.is_cuda()) return;
  // NCCL refuses two ranks on a device of one host, and takes each for a host of its own by this.
  setenv("NCCL_HOSTID", ("sealift-test-" + std::to_string(world.rank)).c_str(), /*overwrite=*/0);
  if (world.rank == 0)
    std::cerr << kSharedDeviceForTests << ": ranks may share a device. This is for tests of collectives alone: it is "
              << "slower than one rank, and no figure of it is one of the device\n";
}

}  // namespace sealift::trainer
