// SPDX-License-Identifier: Apache-2.0
#include "tests/train/made_device/own_kernels.hpp"

#include "tests/train/made_device/memory.hpp"
#include "tests/train/made_device/queue_one.hpp"
#include "trainer/kernels/start.hpp"

#include "tests/train/made_device/made_device.hpp"

#include <doctest/doctest.h>

#include <cstring>

namespace sealift::test::made {
namespace {

namespace kernels = trainer::kernels;

/// The argument as a kernel sees it: each pointer to device memory where kernels find that memory.
std::vector<void*> argument_for_kernels(const void* args, std::size_t bytes) {
  std::vector<void*> words((bytes + sizeof(void*) - 1) / sizeof(void*));
  std::memcpy(words.data(), args, bytes);
  for (auto& word : words) {
    if (is_device_memory(word)) word = for_kernels(word);
  }
  return words;
}

class QueuedLauncher final : public kernels::Launcher {
 public:
  void launch(const kernels::Kernel& kernel, unsigned blocks, const void* args, std::size_t bytes,
              c10::Device device) override {
    count(kernel.name, 0);
    const c10::DeviceGuard on(device);
    current_queue(device.index()).push([kernel, blocks, words = argument_for_kernels(args, bytes)] {
      kernel.on_host({.blocks = blocks, .threads = kernel.threads, .order = kernels::Order::Drawn}, words.data());
    });
  }
};

}  // namespace

OwnKernels::OwnKernels() {
  install();
  const auto fault = kernels::adopt(std::make_shared<QueuedLauncher>(), device(0));
  REQUIRE_MESSAGE(fault.empty(), fault);
}

OwnKernels::~OwnKernels() {
  kernels::register_launcher(device(0).type(), nullptr);
}

}  // namespace sealift::test::made
