// SPDX-License-Identifier: Apache-2.0
// Lays out what a golden run reads, and runs it; see golden_runs.hpp.
// Links and not copies: a model may be large, and the digests of what was read are in the result. The sandbox shows
// what the links lead to, beyond 500 files of models and data their folders, and nothing else of the disk.
#include "packager/models/golden_runs.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "packager/files/replace_text.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/process.hpp"
#include "packager/libraries/library_folders.hpp"
#include "packager/models/model_files.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMostShown = 500;               // of models and data; each is a mount of the sandbox
constexpr std::uint64_t kMostResultBytes = 64 << 20;  // as read_golden_result

// The folder that the job sees as the generation, and the files that its links lead to.
struct GoldenPlace {
  fs::path root;
  std::set<fs::path> data, programs;

  void link_data(const std::string& into, const fs::path& source) { data.insert(link(into, source)); }
  void link_program(const std::string& into, const fs::path& source) { programs.insert(link(into, source)); }

  // The files themselves; of very many of models and data their folders. A program may lie in somebody's home.
  std::set<fs::path> shown() const {
    std::set<fs::path> all = programs;
    for (const fs::path& source : data) all.insert(data.size() <= kMostShown ? source : source.parent_path());
    return all;
  }

 private:
  fs::path link(const std::string& into, const fs::path& source) const {
    const fs::path place = root / into, real = fs::canonical(source);
    fs::create_directories(place.parent_path());
    fs::create_symlink(real, place);
    return real;
  }
};

// What the generation will have of models, data and programs, at its places.
GoldenPlace lay_out(const fs::path& root, const Job& job, const std::vector<LockedModel>& models, const Cache& cache) {
  GoldenPlace place{.root = root, .data = {}, .programs = {}};
  for (const LockedModel& model : models)
    for (const LockedFile& file : model.files) {
      const fs::path source = local_file(model, file, cache);
      if (!fs::is_regular_file(source))
        throw Error(ErrorCode::Missing,
                    {.what = "a golden run cannot be run: a file of a model is not here yet",
                     .where = model.spec.into + "/" + file.path,
                     .next = "take the model from a folder, or name a recorded result: [[golden]] result"});
      place.link_data(model.spec.into + "/" + file.path, source);
    }
  for (const JobProgram& program : job.programs) place.link_program(program.into, program.source);
  return place;
}

// `program` of the table, else the sealift-verify that the bundle carries.
fs::path verifier_of(const GoldenJob& golden, const Job& job) {
  fs::path verifier = golden.program;
  for (const JobProgram& program : job.programs)
    if (verifier.empty() && program.into == "bin/sealift-verify") verifier = program.source;
  if (verifier.empty())
    throw Error(ErrorCode::Usage, {.what = "there is no sealift-verify to run a golden run with",
                                   .where = golden.file.string(),
                                   .expected = "a [[program]] with into = \"bin/sealift-verify\", or a key program",
                                   .next = "name it: [[golden]] program = \"…/bin/sealift-verify\""});
  if (!fs::is_regular_file(verifier))
    throw Error(ErrorCode::Missing, {.what = "the program that is to run a golden run is not there",
                                     .where = verifier.string(),
                                     .next = "name it: [[golden]] program = \"…/bin/sealift-verify\""});
  return fs::canonical(verifier);
}

// The trainer that the result is to be of: the carried one, else the one beside the verifier.
fs::path trainer_of(GoldenPlace& place, const fs::path& verifier) {
  const fs::path at = place.root / "bin/sealift-train", beside = verifier.parent_path() / "sealift-train";
  if (!fs::exists(at)) {
    if (!fs::is_regular_file(beside))
      throw Error(ErrorCode::Missing, {.what = "there is no sealift-train for a golden run",
                                       .where = beside.string(),
                                       .expected = "a [[program]] with into = \"bin/sealift-train\", or one beside " +
                                                   verifier.filename().string()});
    place.link_program("bin/sealift-train", beside);
  }
  return fs::canonical(at);
}

// What a GPU's driver needs of /dev.
std::vector<fs::path> gpu_devices() {
  std::vector<fs::path> devices;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", none))
    if (entry.path().filename().string().starts_with("nvidia")) devices.push_back(entry.path());
  return devices;
}

// Without the user's settings: only what is named here can affect the numbers.
SandboxedRun golden_run(const GoldenJob& golden, const GoldenPlace& place, const fs::path& verifier,
                        const std::set<fs::path>& folders, const fs::path& desk) {
  const bool cuda = golden.device == "cuda";
  SandboxedRun run{.command = {verifier.string(), "golden", golden.file.string(), "--prefix", place.root.string(),
                               "--out", (desk / "result.json").string(), "--device", golden.device},
                   .environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                   {"HOME", (desk / "home").string()},
                                   {"TMPDIR", (desk / "tmp").string()},
                                   {"LANG", "C.UTF-8"}},
                   .readable = {place.root, verifier, golden.file},
                   .writable = {desk},
                   .folder = desk,
                   .devices = cuda ? gpu_devices() : std::vector<fs::path>()};
  if (!golden.libraries.empty()) run.environment["LD_LIBRARY_PATH"] = golden.libraries.string();
  if (const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES"); cuda && chosen)
    run.environment["CUDA_VISIBLE_DEVICES"] = chosen;
  const std::set<fs::path> sources = place.shown();
  run.readable.insert(run.readable.end(), sources.begin(), sources.end());
  run.readable.insert(run.readable.end(), folders.begin(), folders.end());
  // LibTorch chooses its kernels by what the kernel says of the processor: without it other bits come out.
  for (const char* folder : {cuda ? "/sys" : "/sys/devices/system"})
    if (fs::is_directory(folder)) run.readable.emplace_back(folder);
  return run;
}

std::string end_of(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n\r\t");
  if (end == text.npos) return "it said nothing";
  const std::string all = text.substr(0, end + 1);
  return all.size() <= 2000 ? all : "…" + all.substr(all.size() - 2000);
}

// The result as text. A program of the job could have left a link to a file of ours there.
std::string result_of(const SandboxedRun& run, Isolation isolation, const GoldenJob& golden, const fs::path& desk) {
  const ProcessResult ended =
      isolation == Isolation::Sandbox ? run_sandboxed(run) : run_in(run.command, run.environment);
  const std::string said = end_of(ended.err.empty() ? ended.out : ended.err);
  if (ended.exit_code != 0) {
    const bool unloaded = said.find("loading shared libraries") != said.npos;
    throw Error(ErrorCode::SelfTest,
                {.what = "a golden run failed",
                 .where = golden.file.string(),
                 .expected = "exit code 0 of " + run.command.front(),
                 .got = std::to_string(ended.exit_code) + ": " + said,
                 .next = unloaded ? "name the folder of LibTorch: [[golden]] libraries = \"…/torch/lib\""
                                  : "run it by hand: sealift-verify golden, or name a result: [[golden]] result"});
  }
  const fs::path file = desk / "result.json";
  if (fs::symlink_status(file).type() != fs::file_type::regular)
    throw Error(ErrorCode::Format, {.what = "a golden run left no file with its result",
                                    .where = golden.file.string(),
                                    .expected = "a file",
                                    .got = said});
  return bundle::read_text(file, kMostResultBytes);
}

// Runs one in a folder of its own, and returns what it wrote.
std::string run_one(const JobGolden& golden, const Job& job, GoldenPlace& place, const fs::path& desk,
                    Isolation isolation, bundle::Progress& progress) {
  const GoldenJob& ordered = *golden.job;
  const fs::path verifier = verifier_of(ordered, job), trainer = trainer_of(place, verifier);
  std::vector<fs::path> also;
  if (!ordered.libraries.empty()) also.push_back(ordered.libraries);
  std::set<fs::path> folders = library_folders(verifier, job.target.arch, also);
  folders.merge(library_folders(trainer, job.target.arch, also));
  for (const char* name : {"home", "tmp"}) fs::create_directories(desk / name);
  progress.note(fmt::format("golden run {}: {} runs {}{}", golden.name, verifier.string(), ordered.file.string(),
                            isolation == Isolation::Sandbox ? "" : ", outside of a sandbox"));
  return result_of(golden_run(ordered, place, verifier, folders, desk), isolation, ordered, desk);
}

// The verifier runs here, as it will on the target.
void require_own_arch(const JobGolden& golden, const Job& job) {
  if (job.target.arch == machine_arch()) return;
  throw Error(ErrorCode::Platform,
              {.what = "a golden run is recorded on a machine of the target's architecture",
               .where = job.file.string() + ", [[golden]] " + golden.name,
               .expected = job.target.arch,
               .got = machine_arch(),
               .next = "record it there with sealift-verify golden, and name what it wrote: result = \"FILE\""});
}

}  // namespace

std::vector<JobProgram> run_goldens(Job& job, const std::vector<LockedModel>& models, const Cache& cache,
                                    const fs::path& folder, const fs::path& scratch, Isolation isolation,
                                    bundle::Progress& progress) {
  std::vector<JobProgram> results;
  std::optional<GoldenPlace> place;
  for (JobGolden& golden : job.goldens) {
    if (!golden.job) continue;
    require_own_arch(golden, job);
    if (isolation == Isolation::Sandbox)
      require_sandbox(
          "install bubblewrap (Debian: apt install bubblewrap), lock on a machine that allows namespaces, name a "
          "recorded result ([[golden]] result), or say --unsandboxed-builds",
          "the job of a golden run");
    if (!place) place = lay_out(fs::absolute(scratch) / "golden", job, models, cache);
    const fs::path desk = fs::absolute(scratch) / ("golden-" + golden.name);
    const std::string result = run_one(golden, job, *place, desk, isolation, progress);
    fs::remove_all(desk);
    golden.file = fs::absolute(folder / (golden.name + ".golden.json"));
    replace_text(golden.file, result);  // an earlier lock may have left one there
    golden.inputs = read_golden_result(golden.file, golden.name);
    results.push_back({.source = golden.file, .into = golden.into(), .executable = false});
  }
  return results;
}

}  // namespace sealift::packager
