// SPDX-License-Identifier: Apache-2.0
// The driver's interface as far as it is needed here: eight functions by name.
// See cuda_driver.hpp. The names and types are those of cuda.h, whose functions keep their meaning under a versioned
// name for good; the header itself is not needed, so building needs no toolkit. No context is made: that would take
// memory on every device.
#include "trainer/ranks/cuda_driver.hpp"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <fstream>

namespace sealift::trainer {
namespace {

using Result = int;                                          // CUresult; 0 is CUDA_SUCCESS
using Device = int;                                          // CUdevice
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CUdevice_attribute
struct Uuid {
  std::array<unsigned char, 16> bytes;
};

/// A function of the library, or null.
template <class Function>
Function* function(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

std::string text_of(const Uuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (const unsigned char byte : uuid.bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// The functions that are asked; all null-checked once.
struct Functions {
  Result (*init)(unsigned);
  Result (*driver_version)(int*);
  Result (*count)(int*);
  Result (*get)(Device*, int);
  Result (*name)(char*, int, Device);
  Result (*attribute)(int*, int, Device);
  Result (*memory)(std::size_t*, Device);
  Result (*uuid)(Uuid*, Device);

  explicit Functions(void* library)
      : init(function<Result(unsigned)>(library, "cuInit")),
        driver_version(function<Result(int*)>(library, "cuDriverGetVersion")),
        count(function<Result(int*)>(library, "cuDeviceGetCount")),
        get(function<Result(Device*, int)>(library, "cuDeviceGet")),
        name(function<Result(char*, int, Device)>(library, "cuDeviceGetName")),
        attribute(function<Result(int*, int, Device)>(library, "cuDeviceGetAttribute")),
        memory(function<Result(std::size_t*, Device)>(library, "cuDeviceTotalMem_v2")),
        // Only the second version tells the parts of a GPU that is divided (MIG) from each other.
        uuid(function<Result(Uuid*, Device)>(library, "cuDeviceGetUuid_v2")) {}

  bool complete() const { return init && driver_version && count && get && name && attribute && memory && uuid; }
};

CudaDevice describe(const Functions& cuda, int index) {
  Device device = 0;
  CudaDevice result;
  if (cuda.get(&device, index) != 0) return result;
  std::array<char, 256> name{};
  if (cuda.name(name.data(), static_cast<int>(name.size()) - 1, device) == 0) result.name = name.data();
  int major = 0, minor = 0;
  if (cuda.attribute(&major, kCapabilityMajor, device) == 0 && cuda.attribute(&minor, kCapabilityMinor, device) == 0) {
    result.capability = std::to_string(major) + "." + std::to_string(minor);
  }
  std::size_t bytes = 0;
  if (cuda.memory(&bytes, device) == 0) result.bytes = bytes;
  Uuid uuid{};
  if (cuda.uuid(&uuid, device) == 0) result.uuid = text_of(uuid);
  return result;
}

}  // namespace

CudaDriver find_cuda_driver(const std::string& library) {
  CudaDriver driver;
  // Never closed: what the driver started stays.
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    driver.missing = "this host has no NVIDIA driver (" + std::string(dlerror()) + ")";
    return driver;
  }
  const Functions cuda(opened);
  if (!cuda.complete()) {
    driver.missing = library + " is older than CUDA 11.4 or no NVIDIA driver; install a newer driver";
    return driver;
  }
  if (const Result error = cuda.init(0); error != 0) {
    // 100: CUDA_ERROR_NO_DEVICE, also what an empty CUDA_VISIBLE_DEVICES makes.
    driver.missing = error == 100 ? "the NVIDIA driver shows no device"
                                  : "the NVIDIA driver does not start (cuInit: error " + std::to_string(error) + ")";
    return driver;
  }
  int version = 0, count = 0;
  if (cuda.driver_version(&version) == 0) {
    driver.cuda = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  if (std::ifstream module("/sys/module/nvidia/version"); module) std::getline(module, driver.version);
  if (cuda.count(&count) != 0 || count == 0) driver.missing = "the NVIDIA driver shows no device";
  for (int index = 0; index < count; ++index) driver.devices.push_back(describe(cuda, index));
  return driver;
}

}  // namespace sealift::trainer
