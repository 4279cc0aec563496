// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's driver says of this host's GPUs, without a library of CUDA: is there a driver, which devices does it
// show. First step of choosing a rank's device; asked before a gigabyte of CUDA's libraries is loaded. By dlopen of the
// driver's own library, so one program starts on hosts without a driver too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sealift::trainer {

/// A GPU, or the part of one that a process may use.
struct CudaDevice {
  std::string name;         ///< "NVIDIA H100 80GB HBM3"
  std::string capability;   ///< compute capability: "9.0"
  std::string uuid;         ///< "GPU-" and 32 hexadecimal digits; no two devices of any hosts share one
  std::uint64_t bytes = 0;  ///< of its memory
};

struct CudaDriver {
  std::string missing;              ///< why there is nothing to train on; empty: `devices` has some
  std::string version;              ///< of the kernel module, "580.65.06"; empty where the host does not show it
  std::string cuda;                 ///< the newest CUDA that the driver runs: "13.0"
  std::vector<CudaDevice> devices;  ///< in CUDA's numbering, so as CUDA_VISIBLE_DEVICES says
};

/// Asks the driver in `library`; never throws: what is missing is said in `missing`.
CudaDriver find_cuda_driver(const std::string& library = "libcuda.so.1");

}  // namespace sealift::trainer
