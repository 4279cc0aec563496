// SPDX-License-Identifier: Apache-2.0
// What `sealift-train sft` runs, under LibTorch's profiler: a line for each thing that ran, on a CPU or a GPU.
// For bench/gpu.sh; step_profile.py counts the lines, by the same rules as those of a Python peer. A program of its
// own, so that sealift-train has no door for it.
//   sealift-bench-profile sft --SETTING VALUE...    environment: BENCH_PROFILE, the file to write
// A line: name, CPU or a device, begin, end [ns], thread; tab-separated. One process: ranks that it starts are not
// seen.
#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/torch.h>

#include "trainer/fine_tune/fine_tune.hpp"
#include "trainer/ranks/device.hpp"
#include "trainer/ranks/on_ranks.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

namespace {

namespace profiler = torch::autograd::profiler;
namespace impl = torch::profiler::impl;

/// Starts it in this thread, in which a process alone trains. The profiler asks whether there is CUDA when it starts,
/// so its half is loaded first.
void start(bool on_gpu) {
  std::set<impl::ActivityType> activities{impl::ActivityType::CPU};
  if (on_gpu) {
    const auto missing = sealift::trainer::load_cuda();
    TORCH_CHECK(missing.empty(), missing);
    activities.insert(impl::ActivityType::CUDA);
  }
  const impl::ProfilerConfig config(impl::ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities, {at::RecordScope::FUNCTION});
}

void write(const std::string& path) {
  const auto result = profiler::disableProfiler();
  std::ofstream file(path);
  for (const auto& event : result->events()) {
    const auto type = static_cast<libkineto::ActivityType>(event.activityType());
    // Names for stretches of time: nothing ran.
    if (type == libkineto::ActivityType::USER_ANNOTATION || type == libkineto::ActivityType::GPU_USER_ANNOTATION)
      continue;
    file << event.name() << '\t' << (event.deviceType() == c10::DeviceType::CPU ? "CPU" : "device") << '\t'
         << event.startNs() << '\t' << event.endNs() << '\t' << event.startThreadId() << '\n';
  }
  file.close();
  TORCH_CHECK(file, "cannot write ", path, "; name another file in BENCH_PROFILE");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sealift::trainer;
  const char* path = std::getenv("BENCH_PROFILE");
  if (path == nullptr || argc % 2 != 0) {
    std::cerr
        << "sealift-bench-profile: expected sft and pairs of --SETTING VALUE, and a file's name in BENCH_PROFILE\n";
    return 2;
  }
  FineTuneSources sources;
  for (int at = 2; at < argc; at += 2) {
    std::string name = std::string(argv[at]).substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    sources.flags[name] = argv[at + 1];
  }
  const auto options = read_fine_tune_options(Task::Sft, sources);
  start(options.device != "cpu");
  const auto end =
      on_ranks([&](const auto& launch, auto& world) { return fine_tune(options, launch, world); }, 1, argv);
  write(path);
  return end.code;
}
