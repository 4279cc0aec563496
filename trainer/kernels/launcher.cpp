// SPDX-License-Identifier: Apache-2.0
#include "trainer/kernels/launcher.hpp"

#include <array>
#include <atomic>
#include <mutex>

namespace sealift::trainer::kernels {
namespace {

/// Of this process. A launcher is asked for by each layer, by autograd's threads too.
struct Known {
  std::mutex mutex;
  std::array<std::shared_ptr<Launcher>, c10::COMPILE_TIME_MAX_DEVICE_TYPES> launchers;
  std::set<std::string> ran;
  std::atomic<bool> on{true};
  std::atomic<int> registered{0};  ///< launchers, so that a process without one takes no lock
};

Known& known() {
  static Known all;
  return all;
}

}  // namespace

void HostLauncher::launch(const Kernel& kernel, unsigned blocks, const void* args, std::size_t /*bytes*/,
                          c10::Device /*device*/) {
  kernel.on_host({.blocks = blocks, .threads = kernel.threads, .order = order_}, args);
}

void register_launcher(c10::DeviceType device, std::shared_ptr<Launcher> launcher) {
  auto& all = known();
  const std::lock_guard lock(all.mutex);
  auto& place = all.launchers.at(static_cast<std::size_t>(device));
  all.registered += (launcher ? 1 : 0) - (place ? 1 : 0);
  place = std::move(launcher);
}

void switch_kernels(bool on) {
  known().on = on;
}

std::shared_ptr<Launcher> launcher_of(c10::Device device) {
  auto& all = known();
  if (!all.on || all.registered == 0) return nullptr;
  const std::lock_guard lock(all.mutex);
  return all.launchers.at(static_cast<std::size_t>(device.type()));
}

void note_kernel(const char* piece) {
  auto& all = known();
  const std::lock_guard lock(all.mutex);
  all.ran.emplace(piece);
}

std::set<std::string> kernels_that_ran() {
  auto& all = known();
  const std::lock_guard lock(all.mutex);
  return all.ran;
}

void forget_kernels_that_ran() {
  auto& all = known();
  const std::lock_guard lock(all.mutex);
  all.ran.clear();
}

}  // namespace sealift::trainer::kernels
