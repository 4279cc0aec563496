// SPDX-License-Identifier: Apache-2.0
// The few functions of NVML that are needed, declared here.
// See nvml.hpp; names, numbers and meanings are those of NVIDIA's NVML API reference.
// A function that an older driver lacks is a value that is left out.
#include "verify/machine/nvml.hpp"

#include "verify/conduct/check_kind.hpp"

#include <dlfcn.h>

#include <array>
#include <memory>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Device = void*;
constexpr int kNotSupported = 3, kGpuIsLost = 15, kMostLinks = 18;

class Nvml {
 public:
  explicit Nvml(const std::string& library) : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_)
      throw NotRun({"no NVIDIA driver: " + library + " is not there", "没有 NVIDIA 驱动：找不到 " + library});
    if (const int code = call<int()>("nvmlInit_v2"); code != 0) {
      dlclose(handle_);
      const auto text = std::to_string(code);
      throw NotRun({"NVML does not start (error " + text + "): is the driver loaded?",
                    "NVML 无法启动（错误 " + text + "）：驱动是否已加载？"});
    }
  }
  ~Nvml() {
    call<int()>("nvmlShutdown");
    dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// NVML's result, or kNotSupported where there is no such function.
  template <class Signature, class... Given>
  int call(const char* name, Given... given) const {
    auto* function = reinterpret_cast<Signature*>(dlsym(handle_, name));
    return function ? function(given...) : kNotSupported;
  }

 private:
  void* handle_;
};

/// Puts what one call gives into `json`; a value that is not supported is left out.
void put(Json& json, const char* key, int code, const Json& value) {
  if (code == 0) json[key] = value;
  if (code == kGpuIsLost) json["lost"] = true;
}

void put_number(const Nvml& nvml, Json& json, const char* key, const char* function, Device device) {
  unsigned value = 0;
  const int code = nvml.call<int(Device, unsigned*)>(function, device, &value);
  put(json, key, code, value);
}

void put_ecc(const Nvml& nvml, Json& json, const char* key, int counter, Device device) {
  unsigned long long errors = 0;
  constexpr int kUncorrected = 1;
  const int code = nvml.call<int(Device, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors", device,
                                                                         kUncorrected, counter, &errors);
  put(json, key, code, errors);
}

void put_rows(const Nvml& nvml, Json& json, Device device) {
  std::array<unsigned, 4> rows{};
  const int code = nvml.call<int(Device, unsigned*, unsigned*, unsigned*, unsigned*)>(
      "nvmlDeviceGetRemappedRows", device, &rows[0], &rows[1], &rows[2], &rows[3]);
  put(json, "rows_remapped", code, rows[0] + rows[1]);
  put(json, "rows_pending", code, rows[2]);
  put(json, "rows_failed", code, rows[3]);
}

void put_links(const Nvml& nvml, Json& json, Device device) {
  unsigned links = 0, active = 0;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned state = 0;
    if (nvml.call<int(Device, unsigned, unsigned*)>("nvmlDeviceGetNvLinkState", device, link, &state) != 0) continue;
    ++links;
    active += state == 1 ? 1 : 0;
  }
  json["nvlinks"] = links;
  json["nvlinks_active"] = active;
}

void put_text(const Nvml& nvml, Json& json, const char* key, const char* function, Device device) {
  std::array<char, 96> text{};
  const int code = nvml.call<int(Device, char*, unsigned)>(function, device, text.data(), unsigned{95});
  put(json, key, code, std::string(text.data()));
}

Json device_of(const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  if (const int code = nvml.call<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", index, &device); code != 0) {
    throw std::runtime_error("GPU " + std::to_string(index) + " does not answer: NVML error " + std::to_string(code) +
                             "; look for Xid messages in the kernel's log");
  }
  Json json{{"index", index}};
  put_text(nvml, json, "name", "nvmlDeviceGetName", device);
  put_text(nvml, json, "uuid", "nvmlDeviceGetUUID", device);
  put_ecc(nvml, json, "ecc_volatile", 0, device);
  put_ecc(nvml, json, "ecc_aggregate", 1, device);
  put_rows(nvml, json, device);
  put_number(nvml, json, "pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", device);
  put_number(nvml, json, "pcie_max_generation", "nvmlDeviceGetMaxPcieLinkGeneration", device);
  put_number(nvml, json, "pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", device);
  put_number(nvml, json, "pcie_max_width", "nvmlDeviceGetMaxPcieLinkWidth", device);
  constexpr int kSm = 1, kGpuSensor = 0;
  unsigned clock = 0, most = 0, temperature = 0;
  unsigned long long reasons = 0;
  const auto kClock = "nvmlDeviceGetClockInfo", kMost = "nvmlDeviceGetMaxClockInfo";
  int code = nvml.call<int(Device, int, unsigned*)>(kClock, device, kSm, &clock);
  put(json, "sm_mhz", code, clock);
  code = nvml.call<int(Device, int, unsigned*)>(kMost, device, kSm, &most);
  put(json, "sm_max_mhz", code, most);
  code = nvml.call<int(Device, int, unsigned*)>("nvmlDeviceGetTemperature", device, kGpuSensor, &temperature);
  put(json, "temperature", code, temperature);
  code = nvml.call<int(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons);
  put(json, "throttle", code, reasons);
  put_links(nvml, json, device);
  return json;
}

}  // namespace

Json read_gpus(const std::string& library) {
  const Nvml nvml(library);
  std::array<char, 96> driver{};
  nvml.call<int(char*, unsigned)>("nvmlSystemGetDriverVersion", driver.data(), unsigned{95});
  unsigned count = 0;
  if (const int code = nvml.call<int(unsigned*)>("nvmlDeviceGetCount_v2", &count); code != 0) {
    throw std::runtime_error("NVML cannot count the GPUs: error " + std::to_string(code) + "; run nvidia-smi");
  }
  auto devices = Json::array();
  for (unsigned index = 0; index < count && index < 64; ++index) devices.push_back(device_of(nvml, index));
  return {{"driver", driver.data()}, {"devices", devices}};
}

}  // namespace sealift::verify
