// SPDX-License-Identifier: Apache-2.0
// `sealift-pack lock`: resolves a job file; see lock_job.hpp.
#include <fmt/format.h>

#include "packager/lock_job.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::packager {

namespace {

std::uint64_t size_of(const std::vector<LockedWheel>& wheels) {
  std::uint64_t size = 0;
  for (const LockedWheel& wheel : wheels) size += wheel.size;
  return size;
}

void show(const LockResult& result, bundle::Progress& progress) {
  const Lock& lock = result.lock;
  if (!lock.python.empty())
    progress.note(fmt::format("locked {} wheels ({}), {}, {} program(s); they need glibc {}", lock.wheels.size(),
                              bundle::human_size(size_of(lock.wheels)), lock.interpreter.description,
                              lock.programs.size(), lock.glibc_floor.text()));
  for (const LockedModel& model : lock.models)
    progress.note(fmt::format("locked {} {}: {} files ({})", model.spec.data ? "data" : "the model", model.spec.title(),
                              model.tree ? model.tree->files : model.files.size(), bundle::human_size(model.size())));
  if (lock.sdk)
    progress.note(fmt::format("locked the C++ core {} ({})", lock.sdk->version, bundle::human_size(lock.sdk->size)));
  if (!lock.apt.debs.empty())
    progress.note(fmt::format("locked {} Debian packages of {}", lock.apt.debs.size(), lock.apt.suite));
  if (!lock.rpm.rpms.empty())
    progress.note(fmt::format("locked {} rpm packages of release {}", lock.rpm.rpms.size(), lock.rpm.release));
  for (const StartupRule& rule : lock.startup_files)
    progress.warn(
        fmt::format("{} runs code whenever Python starts: its .pth file with SHA-256 {} is allowed by the job",
                    rule.package, rule.sha256.hex()));
  show_findings(result.findings, progress);
  if (!lock.variables.empty())
    progress.note("programs inside get, unless their user sets them:" + [&] {
      std::string line;
      for (const auto& [name, value] : lock.variables) line += " " + name + "=" + value;
      return line;
    }());
}

}  // namespace

void add_lock(bundle::Program& program) {
  struct Options : LockOptions {
    bool unsandboxed = false;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb = program.verb("lock", "resolve a job file for its target and pin everything by digest");
  verb.option("JOB", options->job, "the job file (TOML)").required();
  verb.option("-o,--output", options->out, "the lock file (default: NAME.lock.toml beside the job)");
  verb.option("--cache", options->cache, "folder for downloads (default: $SEALIFT_CACHE, ~/.cache/sealift)");
  verb.option("--uv", options->uv, "the uv program (default: $SEALIFT_UV, PATH)");
  verb.option("--patchelf", options->patchelf, "the patchelf program (default: PATH)");
  verb.option("--launcher", options->launcher, "the static sealift-start (default: beside this program)");
  verb.flag("--unsandboxed-builds", options->unsandboxed, kUnsandboxedBuilds);
  verb.json(options->json);
  verb.action([options] {
    bundle::Progress progress;
    if (options->unsandboxed) options->isolation = Isolation::None;
    const LockResult result = lock_job(*options, progress);
    show(result, progress);
    bundle::print(options->json,
                  {{"lock", result.file.string()},
                   {"wheels", result.lock.wheels.size()},
                   {"size", size_of(result.lock.wheels)},
                   {"glibc_floor", result.lock.glibc_floor.text()},
                   {"variables", result.lock.variables},
                   {"warnings", result.lock.warnings},
                   {"offline", findings_json(result.findings)}},
                  result.file.string() + "\n");
    return 0;
  });
}

}  // namespace sealift::packager
