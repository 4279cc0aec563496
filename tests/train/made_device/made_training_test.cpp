// SPDX-License-Identifier: Apache-2.0
// The jobs of gpu_test on made devices: the engine trains there as one process does on the CPU.
// Each rank has a device of its own and collectives that run beside its streams, late: a wait that the engine forgets,
// or memory that it frees too early, shows as NaN or as other bits than an undelayed run has.
#include "tests/train/made_device/made_device.hpp"

#include "tests/train/gpu/jobs.hpp"
#include "tests/train/property/compare.hpp"

#include <thread>

using namespace sealift::test;

namespace {

/// `job` on `ranks` made devices; `delay` runs in each engine before a collective and in each forward.
GpuOutcome run_made(std::int64_t ranks, const GpuJob& job, const std::function<void()>& delay = {}) {
  made::install();
  return run_staged_on(ranks, made::device, job, delay);
}

}  // namespace

TEST_CASE("ranks on made devices train as one process on the CPU does") {
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    for (const auto& job : gpu_jobs(ranks)) {
      CAPTURE(ranks);
      CAPTURE(job.name);
      const auto outcome = run_made(ranks, job);
      check_near(outcome, job_on_one_cpu(), job.is_fp32() ? 1e-5 : 2e-2);
    }
  }
}

TEST_CASE("drawn configurations train on made devices as one process on the CPU does") {
  const property::Hardware hardware{.device =
                                        [](std::int64_t rank) {
                                          made::install();
                                          return made::device(rank);
                                        },
                                    .engine = staging_factory()};
  const auto* drawn = std::getenv("SEALIFT_PROPERTY_DRAWS");
  const auto first = 1000ULL;  // beyond the cases that are forced to have a feature
  for (auto index = first; index < first + (drawn ? std::stoull(drawn) : 24); ++index) {
    const auto c = property::draw(15, index);
    const auto verdict = property::judge(c, hardware);
    CHECK_MESSAGE(verdict.failure.empty(), "configuration ", index, ": ", c.line(), ": ", verdict.failure);
  }
}

TEST_CASE("what runs late on made devices changes no bit") {
  const auto late = [] { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
  for (const auto& job : gpu_jobs(2)) {
    CAPTURE(job.name);
    check_equal(run_made(2, job, late), run_made(2, job));
  }
}
