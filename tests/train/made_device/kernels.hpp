// SPDX-License-Identifier: Apache-2.0
// The operations of the made devices: the CPU's kernels, queued on a stream.
// Above `streams` and `allocator`; `install` (guard.cpp) registers them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sealift::test::made {

/// Adds an operation of so many bytes to the counts.
void count(const std::string& operation, std::int64_t bytes);

/// The same elements as a CPU tensor, for a task: it has the address and keeps no memory alive.
at::Tensor for_task(const at::Tensor& tensor);

/// Registers what LibTorch needs of a device: memory, views, copies, and for all else one function that asks the meta
/// device for the shapes of the results, allocates them, and queues the CPU's kernel. What has no meta kernel, or whose
/// result is a number that the host wants, waits for the device; that is counted.
void register_kernels();

}  // namespace sealift::test::made
