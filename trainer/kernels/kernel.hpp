// SPDX-License-Identifier: Apache-2.0
// A kernel: its name in the device's code, its threads, and the same body for the host.
// Pieces (rope.cpp) have a table of theirs; all_kernels.cpp has all, which a launcher looks for when it starts.
#pragma once

#include "trainer/kernels/host_block.hpp"

#include <vector>

namespace sealift::trainer::kernels {

struct Kernel {
  const char* name;
  unsigned threads;  ///< of a block
  void (*on_host)(const HostGrid& grid, const void* args);
};

/// Every kernel of device.cu.
std::vector<Kernel> all_kernels();

}  // namespace sealift::trainer::kernels
