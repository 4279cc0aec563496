// SPDX-License-Identifier: Apache-2.0
// The memory of the made devices: an arena that a program cannot touch and kernels can.
// The lowest part: `streams` run the kernels, `allocator` hands the memory out.
// The same pages are mapped twice, once without any right. A program has addresses of that mapping, so that host code
// which reads or writes a device's memory ends with SIGSEGV, as it may on a card.
#pragma once

#include <cstddef>

namespace sealift::test::made {

/// `bytes` of new device memory, aligned to 512; throws std::bad_alloc where the arena of 8 GiB of addresses is full.
/// Never given back: the allocator keeps what is freed. Thread-safe.
void* new_memory(std::size_t bytes);

/// Whether `address` is device memory.
bool is_device_memory(const void* address);

/// Where a kernel finds what a program knows as `address`.
void* for_kernels(const void* address);

}  // namespace sealift::test::made
