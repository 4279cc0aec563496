// SPDX-License-Identifier: Apache-2.0
// Candidates that the driver runs -> the first that uv can resolve; see torch_backend.hpp.
#include "packager/resolve/torch_backend.hpp"

#include <fmt/format.h>

#include "packager/native/driver_floor.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;
using bundle::Version;

namespace {

// "cu130" is of CUDA 13.
std::string driver_of(std::string_view name) {
  return driver_floor(static_cast<unsigned>((name[2] - '0') * 10 + (name[3] - '0'))).value_or("");
}

[[noreturn]] void refuse_without_driver(const Job& job) {
  throw Error(ErrorCode::Platform,
              {.what = "torch_backend = \"auto\" chooses by the target's driver, which its profile does not say",
               .where = job.file.string(),
               .expected = "driver in [target] or its profile, like \"580.65.06\"",
               .next = "run `sealift-install probe` where the driver is loaded, write [target] driver, or name a "
                       "backend: torch_backend = \"cpu\""});
}

}  // namespace

const std::vector<TorchBackend>& torch_backends() {
  static const std::vector<TorchBackend> backends = [] {
    std::vector<TorchBackend> all;
    for (const char* name : {"cu132", "cu130", "cu129", "cu128", "cu126", "cu124", "cu121", "cu118"})
      all.push_back({.name = name, .driver = driver_of(name)});
    return all;
  }();
  return backends;
}

std::string choose_torch_backend(const Job& job, const std::function<std::string(const Job&)>& resolves) {
  if (job.inputs.torch_backend != "auto") return job.inputs.torch_backend;
  if (job.target.driver.empty()) refuse_without_driver(job);
  std::string tried;
  for (const TorchBackend& backend : torch_backends()) {
    tried += fmt::format("\n    {} needs driver {} or newer", backend.name, backend.driver);
    if (Version::leading(job.target.driver) < Version::leading(backend.driver)) continue;
    Job candidate = job;
    candidate.inputs.torch_backend = backend.name;
    const std::string fault = resolves(candidate);
    if (fault.empty()) return backend.name;
    tried += ": it would run, but uv says: " + fault;
  }
  throw Error(ErrorCode::Platform,
              {.what = "no build of torch has what the job requires and runs with the target's driver",
               .where = job.file.string(),
               .expected = "one for NVIDIA driver " + job.target.driver,
               .got = tried,
               .next = "require another version of torch, update the target's driver and probe it again, or take "
                       "torch_backend = \"cpu\""});
}

}  // namespace sealift::packager
