// SPDX-License-Identifier: Apache-2.0
// Kernels through CUDA's runtime, as far as it goes without a card: which image a card gets, what a runtime, a driver
// or a card lacks is one line, and what is started arrives whole.
#include "trainer/kernels/cuda_launcher.hpp"

#include "trainer/kernels/head.hpp"
#include "trainer/kernels/rope.hpp"
#include "trainer/kernels/start.hpp"
#include "trainer/kernels/swiglu.hpp"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

namespace kernels = sealift::trainer::kernels;
using kernels::Image;

namespace {

std::string fake_cudart() {
  const char* path = std::getenv("FAKE_CUDART");
  return path ? path : "";
}

/// Sets a variable while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

/// Images that name all kernels, for cards of these capabilities, and a text.
std::vector<Image> images_of(std::initializer_list<int> capabilities, bool text = true) {
  static const std::string names = [] {
    std::string all;
    for (const auto& each : kernels::all_kernels()) all += std::string(each.name) + "\n";
    return all;
  }();
  std::vector<Image> made;
  for (const int each : capabilities) made.push_back({each, false, names.c_str(), names.size()});
  if (text) made.push_back({80, true, names.c_str(), names.size()});
  return made;
}

kernels::CudaKernels load(const std::vector<Image>& images, const std::string& capability) {
  return kernels::load_cuda_kernels(fake_cudart(), images, capability,
                                    [](c10::Device) { return reinterpret_cast<void*>(std::uintptr_t{77}); });
}

int starts = 0;

struct Size {
  unsigned x, y, z;
};

/// What a card would do.
void run_here(const char* name, Size blocks, Size threads, const void* args, std::size_t shared, void* stream) {
  for (const auto& kernel : kernels::all_kernels()) {
    if (std::strcmp(kernel.name, name) != 0) continue;
    ++starts;
    CHECK(threads.x == kernel.threads);
    CHECK(blocks.y * blocks.z * threads.y * threads.z == 1);
    CHECK(shared == 0);
    CHECK(stream == reinterpret_cast<void*>(std::uintptr_t{77}));
    kernel.on_host({.blocks = blocks.x, .threads = threads.x}, args);
  }
}

/// As a card that adds up wrongly.
void run_wrongly(const char*, Size, Size, const void*, std::size_t, void*) {}

void tell(void (*to)(const char*, Size, Size, const void*, std::size_t, void*)) {
  void* opened = dlopen(fake_cudart().c_str(), RTLD_NOW);
  REQUIRE(opened);
  reinterpret_cast<void (*)(decltype(to))>(dlsym(opened, "fake_cudart_tell"))(to);
}

}  // namespace

TEST_CASE("a card gets what is compiled for its major number, a newer one the text, an older one nothing") {
  const auto images = images_of({80, 90, 100, 120});
  const auto image = [&](const char* capability) {
    const auto found = kernels::image_for(images, capability);
    return found ? (found->is_ptx ? -1 : 1) * found->capability : 0;
  };
  CHECK(image("8.0") == 80);
  CHECK(image("8.9") == 80);
  CHECK(image("9.0") == 90);
  CHECK(image("10.0") == 100);
  CHECK(image("10.3") == 100);
  CHECK(image("12.1") == 120);
  CHECK(image("11.0") == -80);
  CHECK(image("13.0") == -80);
  CHECK(image("7.5") == 0);
  CHECK(image("") == 0);
  CHECK(image("nine") == 0);
}

TEST_CASE("what is compiled into this program has every kernel") {
  for (const auto& image : kernels::images()) {
    CAPTURE(image.capability);
    CHECK(image.bytes > 1000);
    CHECK(image.begin[image.bytes] == 0);
    const std::string_view code(image.begin, image.bytes);
    for (const auto& each : kernels::all_kernels()) CHECK(code.find(each.name) != std::string_view::npos);
    CHECK(code.starts_with(image.is_ptx ? "//"
                                        : "\x7f"
                                          "ELF"));
  }
}

TEST_CASE("kernels that cannot be loaded are one line that says why") {
  const auto images = images_of({90});
  CHECK(load({}, "9.0").why_not == "this program was built without NVRTC, which compiles them");
  CHECK(load(images, "7.5").why_not == "none is compiled for a card of capability 7.5");
  CHECK(kernels::load_cuda_kernels("/none/libcudart.so", images, "9.0", {})
            .why_not.starts_with("CUDA's runtime cannot be opened: "));
  CHECK(kernels::load_cuda_kernels("", images, "9.0", {}).why_not == "LibTorch has loaded no CUDA runtime");
  // A library that lacks the runtime's functions, or an older runtime.
  CHECK(kernels::load_cuda_kernels("libm.so.6", images, "9.0", {}).why_not ==
        "libm.so.6 is older than CUDA 12.8, whose runtime loads kernels");
  {
    const Variable broken("FAKE_CUDART_LOAD", "200");
    CHECK(load(images, "9.0").why_not ==
          "what is compiled for 9.0 is not taken: device kernel image is invalid (CUDA's error 200)");
  }
  {
    const Variable old("FAKE_CUDART_LOAD", "222");
    CHECK(load(images, "13.0").why_not ==
          "the text (PTX) for cards from 8.0 is not taken: the provided PTX was compiled with an unsupported "
          "toolchain. (CUDA's error 222); a newer driver takes it");
  }
  const std::vector<Image> lacking{{90, false, "sealift_rope_fp32\n", 18}};
  CHECK(load(lacking, "9.0").why_not ==
        "what is compiled for 9.0 has no kernel sealift_rope_bf16: named symbol not found (CUDA's error 500)");
  const auto good = load(images, "9.0");
  CHECK(good.why_not.empty());
  CHECK(good.launcher);
}

TEST_CASE("what is started through CUDA's runtime gives the host's numbers, and a launch that fails is said") {
  tell(run_here);
  starts = 0;
  const auto loaded = load(images_of({90}), "9.0");
  REQUIRE(loaded.launcher);
  CHECK(kernels::rope_fault(*loaded.launcher, at::kCPU).empty());
  CHECK(starts == 6);
  CHECK(kernels::swiglu_fault(*loaded.launcher, at::kCPU).empty());
  CHECK(starts == 6 + 12);
  CHECK(kernels::head_fault(*loaded.launcher, at::kCPU).empty());
  CHECK(starts == 6 + 12 + 6);
  const Variable broken("FAKE_CUDART_START", "1");
  try {
    kernels::rope_fault(*loaded.launcher, at::kCPU);
    FAIL("a launch that failed was not said");
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    CHECK(
        text.find("does not start with 6 blocks of 128 threads: another error (CUDA's error 1); own_kernels = false") !=
        std::string::npos);
  }
}

TEST_CASE("a card on which kernels compute other numbers, or do not start, goes without them") {
  const auto images = images_of({90});
  tell(run_wrongly);
  CHECK(kernels::adopt(load(images, "9.0").launcher, at::kCPU).find("gives other numbers than the host's") !=
        std::string::npos);
  CHECK_FALSE(kernels::launcher_of(at::kCPU));
  tell(run_here);
  {
    const Variable broken("FAKE_CUDART_START", "1");
    CHECK(kernels::adopt(load(images, "9.0").launcher, at::kCPU).find("does not start") != std::string::npos);
  }
  CHECK_FALSE(kernels::launcher_of(at::kCPU));
  CHECK(kernels::adopt(load(images, "9.0").launcher, at::kCPU).empty());
  CHECK(kernels::launcher_of(at::kCPU));
  kernels::switch_kernels(false);
  CHECK_FALSE(kernels::launcher_of(at::kCPU));
  kernels::switch_kernels(true);
  kernels::register_launcher(at::kCPU, nullptr);
  CHECK(kernels::start_kernels(at::kCPU, {}) == "they are for NVIDIA's cards, and this device is cpu");
}
