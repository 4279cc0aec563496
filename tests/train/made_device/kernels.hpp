// SPDX-License-Identifier: Apache-2.0
// The operations of the made devices: the CPU's kernels, queued on a stream.
// Above `streams` and `allocator`; `install` (guard.cpp) registers them.
#pragma once

namespace sealift::test::made {

/// Registers what LibTorch needs of a device: memory, views, copies, and for all else one function that asks the meta
/// device for the shapes of the results, allocates them, and queues the CPU's kernel. What has no meta kernel, or whose
/// result is a number that the host wants, waits for the device; that is counted.
void register_kernels();

}  // namespace sealift::test::made
