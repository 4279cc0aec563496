// SPDX-License-Identifier: Apache-2.0
// Lays out what a golden run reads, and runs it; see golden_runs.hpp.
// Links and not copies: a model may be large, and the digests of what was read are in the result.
#include "packager/models/golden_runs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/host/process.hpp"
#include "packager/models/model_files.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

void link_into(const fs::path& root, const std::string& into, const fs::path& source) {
  const fs::path place = root / into;
  fs::create_directories(place.parent_path());
  fs::create_symlink(source, place);
}

// What the generation will have of models, data and programs, at its places.
void lay_out(const fs::path& root, const Job& job, const std::vector<LockedModel>& models, const Cache& cache) {
  for (const LockedModel& model : models)
    for (const LockedFile& file : model.files) {
      const fs::path source = local_file(model, file, cache);
      if (!fs::is_regular_file(source))
        throw Error(ErrorCode::Missing,
                    {.what = "a golden run cannot be run: a file of a model is not here yet",
                     .where = model.spec.into + "/" + file.path,
                     .next = "take the model from a folder, or name a recorded result: [[golden]] result"});
      link_into(root, model.spec.into + "/" + file.path, fs::absolute(source));
    }
  for (const JobProgram& program : job.programs) link_into(root, program.into, fs::absolute(program.source));
}

// `program` of the table, else the sealift-verify that the bundle carries.
fs::path verifier_of(const GoldenJob& golden, const Job& job) {
  if (!golden.program.empty()) return golden.program;
  const auto carried = std::find_if(job.programs.begin(), job.programs.end(),
                                    [](const JobProgram& program) { return program.into == "bin/sealift-verify"; });
  if (carried != job.programs.end()) return carried->source;
  throw Error(ErrorCode::Usage, {.what = "there is no sealift-verify to run a golden run with",
                                 .where = golden.file.string(),
                                 .expected = "a [[program]] with into = \"bin/sealift-verify\", or a key program",
                                 .next = "name it: [[golden]] program = \"…/bin/sealift-verify\""});
}

// The trainer that the result is to be of: the carried one, else the one beside the verifier.
void need_trainer(const fs::path& root, const fs::path& verifier) {
  if (!fs::exists(root / "bin/sealift-train"))
    link_into(root, "bin/sealift-train", verifier.parent_path() / "sealift-train");
}

}  // namespace

std::vector<JobProgram> run_goldens(Job& job, const std::vector<LockedModel>& models, const Cache& cache,
                                    const fs::path& folder, const fs::path& scratch, bundle::Progress& progress) {
  std::vector<JobProgram> results;
  const fs::path root = scratch / "golden";
  for (JobGolden& golden : job.goldens) {
    if (!golden.job) continue;
    if (!fs::exists(root)) lay_out(root, job, models, cache);
    const fs::path verifier = fs::absolute(verifier_of(*golden.job, job));
    need_trainer(root, verifier);
    golden.file = fs::absolute(folder / (golden.name + ".golden.json"));
    fs::create_directories(folder);
    progress.note(fmt::format("golden run {}: {} runs {}", golden.name, verifier.string(), golden.job->file.string()));
    std::map<std::string, std::string> environment;
    if (!golden.job->libraries.empty()) environment["LD_LIBRARY_PATH"] = golden.job->libraries.string();
    progress.note(run_checked({verifier.string(), "golden", golden.job->file.string(), "--prefix", root.string(),
                               "--out", golden.file.string(), "--device", golden.job->device},
                              environment));
    golden.inputs = read_golden_result(golden.file, golden.name);
    results.push_back({.source = golden.file, .into = golden.into(), .executable = false});
  }
  return results;
}

}  // namespace sealift::packager
