// SPDX-License-Identifier: Apache-2.0
// [python] torch_backend = "auto": which build of torch fits the target. PyTorch publishes each version for several
// CUDAs, in an index of its own for each; the newest that the target's driver runs and that has what the job requires
// is taken. uv's own "auto" would look at the packing machine's driver.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "packager/job/job.hpp"

namespace sealift::packager {

struct TorchBackend {
  std::string name;    // uv's: "cu128"
  std::string driver;  // the oldest that runs it
};

// All that PyTorch has published since CUDA 11.8 (torch 2.0), the newest first. Source: uv's list of torch backends;
// NVIDIA's table of drivers.
const std::vector<TorchBackend>& torch_backends();

// Calls `resolves` with the job for one backend after another, the newest first, and returns the first of which it says
// that it has all; it answers with uv's message otherwise. A job that names a backend, or none, is left as it is.
// Throws Platform when the profile does not say its driver, and, with every candidate and the driver it needs, when
// none fits.
std::string choose_torch_backend(const Job& job, const std::function<std::string(const Job&)>& resolves);

}  // namespace sealift::packager
