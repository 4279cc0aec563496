// SPDX-License-Identifier: Apache-2.0
// Who gives out the memory of the made devices: a caching allocator that fills what is freed with NaN.
// Between `streams`, in whose order memory is filled and used again, and `guard`, which shows it to c10.
// As CUDA's: a block belongs to the stream that was current when it was allocated. Freed, it may be used again by that
// stream at once; another stream that used it without `record_stream` finds NaN there.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstdint>

namespace sealift::test::made {

/// Of device memory, on the calling thread's current device.
c10::Allocator& device_allocator();

/// Of host memory that is page-locked: copies from and to it need not be waited for.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* address);

/// The block is not used again before `stream` has done what it has now.
void record_stream(const c10::DataPtr& memory, const c10::Stream& stream);

/// Bytes of blocks that are in use on `device`.
std::int64_t bytes_in_use(std::int8_t device);

}  // namespace sealift::test::made
