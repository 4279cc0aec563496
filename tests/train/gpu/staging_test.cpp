// SPDX-License-Identifier: Apache-2.0
// The jobs of gpu_test on a CPU: the engine over the staging backend trains as one process does.
// So the jobs themselves, and the path of the core through a factory of backends, are run where there is no GPU.
// The backend alone: comm/staging_backend_test.cpp.
#include "tests/train/gpu/jobs.hpp"

using namespace sealift::test;

TEST_CASE("ranks over staging backends train as one process does") {
  for (const std::int64_t ranks : {2, 4}) {
    for (const auto& job : gpu_jobs(ranks)) {
      CAPTURE(ranks);
      CAPTURE(job.name);
      const auto outcome = run_staged(ranks, at::kCPU, job);
      CHECK((outcome.flats > 0 || job.policy.method == ParallelMethod::Ddp));
      check_near(outcome, job_on_one_cpu(), job.is_fp32() ? 1e-5 : 2e-2);
    }
  }
}
