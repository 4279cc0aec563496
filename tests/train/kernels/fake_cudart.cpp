// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime without a card: loads what it is given, has the kernels whose names stand in it, and tells a test what
// is started. FAKE_CUDART_LOAD and FAKE_CUDART_START are the errors that it answers with.
// For cuda_launcher_test. Its handles are names, so that a test knows what was asked for.
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

namespace {

int error_of(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

struct Size {
  unsigned x, y, z;
};

using Started = void (*)(const char* kernel, Size blocks, Size threads, const void* args, std::size_t shared,
                         void* stream);
Started started = nullptr;

}  // namespace

extern "C" {

void fake_cudart_tell(Started to) {
  started = to;
}

int cudaLibraryLoadData(void** library, const void* code, int*, void**, unsigned, int*, void**, unsigned) {
  *library = const_cast<void*>(code);
  return error_of("FAKE_CUDART_LOAD");
}
/// The code of a test is a text that names its kernels, each ended by a line's end.
int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  static std::set<std::string> names;
  if (!std::strstr(static_cast<const char*>(library), (std::string(name) + "\n").c_str())) return 500;
  *kernel = const_cast<char*>(names.emplace(name).first->c_str());
  return 0;
}
int cudaLibraryUnload(void*) {
  return 0;
}
int cudaLaunchKernel(const void* kernel, Size blocks, Size threads, void** args, std::size_t shared, void* stream) {
  if (const int error = error_of("FAKE_CUDART_START")) return error;
  started(static_cast<const char*>(kernel), blocks, threads, args[0], shared, stream);
  return 0;
}
int cudaGetLastError() {
  return 0;
}
const char* cudaGetErrorString(int error) {
  return error == 222   ? "the provided PTX was compiled with an unsupported toolchain."
         : error == 200 ? "device kernel image is invalid"
         : error == 500 ? "named symbol not found"
                        : "another error";
}

}  // extern "C"
