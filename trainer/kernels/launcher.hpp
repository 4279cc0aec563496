// SPDX-License-Identifier: Apache-2.0
// What starts kernels on a kind of device, and which pieces may be asked of it.
// Pieces (rope.hpp) ask `launcher_of`; who knows a device registers its launcher (cuda_launcher.cpp, tests). Without
// one, or switched off, a piece answers nothing and its caller goes the plain way by ATen.
#pragma once

#include "trainer/kernels/kernel.hpp"

#include <c10/core/Device.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>

namespace sealift::trainer::kernels {

class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  /// Starts `blocks` blocks on the current stream of `device`. `args`: the one argument, of so many bytes; it is
  /// copied.
  virtual void launch(const Kernel& kernel, unsigned blocks, const void* args, std::size_t bytes,
                      c10::Device device) = 0;
};

/// Runs a kernel here and now, on memory of the host.
class HostLauncher final : public Launcher {
 public:
  explicit HostLauncher(Order order = Order::Given) : order_(order) {}
  void launch(const Kernel& kernel, unsigned blocks, const void* args, std::size_t bytes, c10::Device device) override;

 private:
  Order order_;
};

/// Makes a kind of device's launcher known; null: it has none, as before.
void register_launcher(c10::DeviceType device, std::shared_ptr<Launcher> launcher);

/// Switches all pieces on or off in this process. On at first.
void switch_kernels(bool on);

/// The launcher of a device; null: go the plain way.
std::shared_ptr<Launcher> launcher_of(c10::Device device);

/// Notes that a piece ran by a kernel of its own, for the result.
void note_kernel(const char* piece);
std::set<std::string> kernels_that_ran();
void forget_kernels_that_ran();

}  // namespace sealift::trainer::kernels
