// SPDX-License-Identifier: Apache-2.0
// A made device: four accelerators in this process's memory, which LibTorch trains on as it would on cards.
// Above its parts (`memory`, `streams`, `allocator`, `kernels`, `guard`); tests of the engine include it.
// It takes the paths that the CPU does not: streams beside each other, events, host memory that is copied later, memory
// that is used again in the order of a stream. Values are the CPU's to the bit, since kernels are the CPU's.
// c10 calls it "made" (PrivateUse1); torch_openreg of PyTorch's tests is the example that it follows.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>

namespace sealift::test::made {

/// Makes LibTorch know the device; once per process, before anything asks for an accelerator. More calls do nothing.
void install();

/// Device `index`, of 0 to 3. A rank that is a thread needs its own: autograd has one thread for a device.
c10::Device device(std::int64_t index);

/// What the devices have been asked for since `reset_counts`.
struct Counts {
  std::int64_t operations = 0;                 ///< kernels: all but views
  std::int64_t bytes = 0;                      ///< of their inputs and outputs
  std::int64_t copies_in = 0, copies_out = 0;  ///< from and to the host
  std::map<std::string, std::int64_t> waits;   ///< of a host for the device, by the operation that needed it
  std::map<std::string, std::int64_t> by_operation;
};

Counts counts();
void reset_counts();

/// Bytes of tensors on `device`.
std::int64_t bytes_in_use(c10::Device device);

/// Returns when everything on `device` is done; throws what failed there.
void synchronize(c10::Device device);

/// Holds the current stream of `device`: what is queued there from now on runs after `release`, or the end of this.
class Hold {
 public:
  explicit Hold(c10::Device device);
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { release(); }

  void release();

 private:
  std::shared_ptr<std::promise<void>> released_ = std::make_shared<std::promise<void>>();
};

}  // namespace sealift::test::made
