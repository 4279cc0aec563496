// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 with two GPUs, of which the second has each fault that NVML can tell of.
// For nvml_test: there is no GPU where this is tested.
// It lacks one function (temperature), as an older driver does.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

std::uintptr_t index_of(void* device) {
  return reinterpret_cast<std::uintptr_t>(device) - 100;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return std::snprintf(text, size, "535.183.06") < 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return std::getenv("FAKE_NVML_CANNOT_COUNT") ? 999 : 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(std::uintptr_t{100} + index);
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  return std::snprintf(text, size, "Fake %u", static_cast<unsigned>(index_of(device))) < 0;
}
int nvmlDeviceGetUUID(void*, char* text, unsigned size) {
  return std::snprintf(text, size, "GPU-fake") < 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
  *errors = type == 1 ? index_of(device) * (counter == 0 ? 3 : 7) : 99;
  return 0;
}
int nvmlDeviceGetRemappedRows(void* device, unsigned* a, unsigned* b, unsigned* pending, unsigned* failed) {
  *a = 1, *b = 2;
  *pending = *failed = static_cast<unsigned>(index_of(device));
  return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* value) {
  *value = 1;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) {
  *value = 5;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* value) {
  *value = index_of(device) ? 8 : 16;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) {
  *value = 16;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* value) {
  *value = type == 1 ? 1410 : 0;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int type, unsigned* value) {
  *value = type == 1 ? 1980 : 0;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* value) {
  *value = index_of(device) ? 0x44 : 0x5;  // idle, application clocks and the software power cap are no faults
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  if (link >= 4) return 3;
  *active = index_of(device) && link == 2 ? 0 : 1;
  return 0;
}

}  // extern "C"
