// SPDX-License-Identifier: Apache-2.0
// See cuda_launcher.hpp. Names, types and numbers are those of cuda_runtime_api.h, which keeps them within a major
// version; cudaLibraryLoadData and cudaLibraryGetKernel are there since CUDA 12.8.
#include "trainer/kernels/cuda_launcher.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <dlfcn.h>

#include <map>

namespace sealift::trainer::kernels {
namespace {

using Error = int;                    // cudaError_t; 0 is cudaSuccess
constexpr int kUnsupportedPtx = 222;  // cudaErrorUnsupportedPtxVersion
struct Size {                         // dim3
  unsigned x = 1, y = 1, z = 1;
};

/// The functions that are asked; a library without one of them is too old.
struct Runtime {
  Error (*load)(void** library, const void* code, int* jit, void** jit_values, unsigned jits, int* options,
                void** option_values, unsigned count);
  Error (*get)(void** kernel, void* library, const char* name);
  Error (*unload)(void* library);
  Error (*start)(const void* kernel, Size grid, Size block, void** args, std::size_t shared, void* stream);
  Error (*last)();
  const char* (*text)(Error);

  explicit Runtime(void* opened)
      : load(find<decltype(load)>(opened, "cudaLibraryLoadData")),
        get(find<decltype(get)>(opened, "cudaLibraryGetKernel")),
        unload(find<decltype(unload)>(opened, "cudaLibraryUnload")),
        start(find<decltype(start)>(opened, "cudaLaunchKernel")),
        last(find<decltype(last)>(opened, "cudaGetLastError")),
        text(find<decltype(text)>(opened, "cudaGetErrorString")) {}

  bool complete() const { return load && get && unload && start && last && text; }

  /// What an error means. It is forgotten too: LibTorch would find it after its own next kernel.
  std::string said(Error error) const {
    last();
    return c10::str(text(error), " (CUDA's error ", error, ")");
  }

 private:
  template <class Function>
  static Function find(void* opened, const char* name) {
    return reinterpret_cast<Function>(dlsym(opened, name));
  }
};

class CudaLauncher final : public Launcher {
 public:
  CudaLauncher(const Runtime& runtime, std::map<std::string, void*, std::less<>> kernels, StreamOf stream_of)
      : runtime_(runtime), kernels_(std::move(kernels)), stream_of_(std::move(stream_of)) {}

  void launch(const Kernel& kernel, unsigned blocks, const void* args, std::size_t /*bytes*/,
              c10::Device device) override {
    std::array<void*, 1> all{const_cast<void*>(args)};  // the runtime copies what it points to
    const auto error = runtime_.start(kernels_.find(std::string_view(kernel.name))->second, {blocks}, {kernel.threads},
                                      all.data(), /*shared=*/0, stream_of_(device));
    TORCH_CHECK(error == 0, "the kernel ", kernel.name, " does not start with ", blocks, " blocks of ", kernel.threads,
                " threads: ", runtime_.said(error), "; own_kernels = false computes the same by LibTorch's kernels");
  }

 private:
  Runtime runtime_;
  std::map<std::string, void*, std::less<>> kernels_;
  StreamOf stream_of_;
};

std::string name_of(const Image& image) {
  return c10::str(image.is_ptx ? "the text (PTX) for cards from " : "what is compiled for ", image.capability / 10, ".",
                  image.capability % 10);
}

CudaKernels none(const std::string& why) {
  return {.launcher = nullptr, .why_not = why};
}

CudaKernels load(const Runtime& runtime, const Image& image, StreamOf stream_of) {
  void* library = nullptr;
  auto error = runtime.load(&library, image.begin, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error != 0) {
    return none(name_of(image) + " is not taken: " + runtime.said(error) +
                (error == kUnsupportedPtx ? "; a newer driver takes it" : ""));
  }
  std::map<std::string, void*, std::less<>> kernels;
  for (const auto& each : all_kernels()) {
    error = runtime.get(&kernels[each.name], library, each.name);
    if (error == 0) continue;
    const auto said = runtime.said(error);
    runtime.unload(library);
    return none(c10::str(name_of(image), " has no kernel ", each.name, ": ", said));
  }
  return {.launcher = std::make_shared<CudaLauncher>(runtime, std::move(kernels), std::move(stream_of)), .why_not = {}};
}

}  // namespace

CudaKernels load_cuda_kernels(const std::string& library, const std::vector<Image>& images,
                              const std::string& capability, StreamOf stream_of) {
  if (images.empty()) return none("this program was built without NVRTC, which compiles them");
  const auto image = image_for(images, capability);
  if (!image) return none("none is compiled for a card of capability " + capability);
  if (library.empty()) return none("LibTorch has loaded no CUDA runtime");
  // Never closed: kernels stay in use until the end.
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) return none(c10::str("CUDA's runtime cannot be opened: ", dlerror()));
  const Runtime runtime(opened);
  if (!runtime.complete()) return none(library + " is older than CUDA 12.8, whose runtime loads kernels");
  return load(runtime, *image, std::move(stream_of));
}

void* current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace sealift::trainer::kernels
