// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that shows as many devices as FAKE_DEVICES says, for the CUDA of FAKE_CUDA (13020: 13.2), and can do
// nothing else.
// For device_test and trainer_test.sh: choosing a device is tested where there is no GPU.
// Its devices are unlike any real one's, so that nothing takes them for real.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int devices() {
  const char* text = std::getenv("FAKE_DEVICES");
  return text ? std::atoi(text) : 2;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  return devices() == 0 ? 100 : devices() < 0 ? 804 : 0;
}
int cuDriverGetVersion(int* version) {
  const char* text = std::getenv("FAKE_CUDA");
  *version = text ? std::atoi(text) : 13020;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = devices();
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = 40 + index;  // a handle is no index
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake %d", device - 40);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 1 : -1;
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{5} << 30;
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  std::memset(uuid, device, 16);
  return 0;
}

}  // extern "C"
