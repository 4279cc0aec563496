// SPDX-License-Identifier: Apache-2.0
// Golden runs that a job file asks for by their job: `lock` runs each with the sealift-verify that it names, over the
// very files that the bundle will carry, and carries what came out.
// Beside lock_job, after the models are locked: a result is held to the files that it read like one that was recorded.
// In the sandbox of builds: the job reads models and data of others, and a result that needed a network does not count.
#pragma once

#include <filesystem>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/host/sandbox.hpp"
#include "packager/job/job.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Runs those of `job.goldens` that have a job, in a folder below `scratch` that is laid out as the generation will be,
// writes FOLDER/NAME.golden.json, fills in what they read, and returns the results as files to carry. Throws Missing
// naming what is not here yet: a model's file, the programs; Platform for another architecture's target; CannotCheck
// where there is no sandbox; SelfTest with the end of what the program said; Format where it left no file; Usage as
// read_job_goldens.
std::vector<JobProgram> run_goldens(Job& job, const std::vector<LockedModel>& models, const Cache& cache,
                                    const std::filesystem::path& folder, const std::filesystem::path& scratch,
                                    Isolation isolation, bundle::Progress& progress);

}  // namespace sealift::packager
