// SPDX-License-Identifier: Apache-2.0
// uv's answer, then what it takes to build of it; see lock_python.hpp.
#include "packager/python/lock_python.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "packager/builds/source_metadata.hpp"
#include "packager/resolve/project_source.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

// uv refuses packages without wheels too, but not folders, repositories and the packages of a given lock.
void refuse_sources(const std::vector<SourcePackage>& sources, const std::map<std::string, std::string>& needs) {
  std::string got;
  for (const SourcePackage& source : sources) {
    const auto via = needs.find(source.name);
    got += (got.empty() ? "" : ", ") + source.title() + (via == needs.end() ? "" : " (needed by " + via->second + ")");
  }
  throw Error(ErrorCode::Platform,
              {.what = fmt::format("{} package(s) have no wheel and would have to be built", sources.size()),
               .expected = "a wheel for every package, because the job says build = false",
               .got = got,
               .next = "leave build = false out, or require versions that have wheels"});
}

// The very source that a wheel was built from, in one run.
std::string identity_of(const SourcePackage& source) {
  return source.title() + " " + source.url + " " + source.commit + " " + source.folder.string() + " " +
         source.subdirectory + (source.sha256 ? source.sha256->hex() : "");
}

// Wheels of sources by what they were built from. A wheel may require something else than uv was told before it was
// built, and uv may then choose other sources.
class SourceWheels {
 public:
  // Builds those of `sources` that are new; false when all of them require what uv went by.
  bool build(const std::vector<SourcePackage>& sources, const PythonMeans& means, const Job& job,
             bundle::Progress& progress, const WhoNeeds& needs, SourceFacts& facts) {
    std::vector<SourcePackage> fresh;
    for (const SourcePackage& source : sources)
      if (!built_.contains(identity_of(source))) fresh.push_back(source);
    if (fresh.empty()) return false;
    BuiltWheels made = build_sources(fresh, means.tools, job.target, means.cache, progress, needs, job.startup_files);
    bool news = false;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (facts.learn(metadata_of_built(made.wheels[i], means.cache, job.startup_files))) news = true;
      built_.insert_or_assign(identity_of(fresh[i]), std::pair(std::move(made.wheels[i]), std::move(made.needs[i])));
    }
    return news;
  }

  // The wheels of just these sources, into `locked`.
  void add(const std::vector<SourcePackage>& sources, LockedPython& locked) const {
    for (const SourcePackage& source : sources) {
      const auto& [wheel, need] = built_.at(identity_of(source));
      locked.wheels.push_back(wheel);
      locked.needs.push_back(need);
    }
  }

 private:
  std::map<std::string, std::pair<LockedWheel, NativeNeed>> built_;
};

[[noreturn]] void refuse_empty_lock(const Job& job) {
  throw Error(ErrorCode::Usage,
              {.what = "no package of the lock that the job names is for this target and use",
               .where = job.inputs.lock_file->string(),
               .expected = "packages whose markers hold for CPython " + job.python + " on " + job.target.arch,
               .next = "name extras and groups of the lock in [python], or correct version and [target]"});
}

constexpr int kMostBuildRounds = 20;  // of building and asking once more

}  // namespace

LockedPython lock_python(const Job& job, PythonMeans& means, bundle::Progress& progress) {
  LockedPython locked;
  const auto needs = [&] { return who_needs(job, means.tools.uv, means.uv_python, locked.facts); };
  SourceWheels wheels;
  const std::optional<ProjectSource> project = project_to_build(job);
  for (int round = 0;; ++round) {
    UvAnswer answer = ask_uv(job, means, locked.facts, progress);
    if (!job.inputs.build && !answer.choice.sources.empty()) refuse_sources(answer.choice.sources, needs());
    if (project && !project->carried)  // it is a source only for what it requires
      std::erase_if(answer.choice.sources, [&](const SourcePackage& source) { return source.name == project->name; });
    if (wheels.build(answer.choice.sources, means, job, progress, needs, locked.facts)) {
      if (round < kMostBuildRounds) continue;
      throw Error(ErrorCode::Platform, {.what = "what is built keeps asking for other sources",
                                        .where = job.file.string(),
                                        .next = "require versions, or constrain them"});
    }
    for (const std::string& warning : answer.resolution.warnings) progress.warn(warning);
    locked.warnings = std::move(answer.resolution.warnings);
    locked.wheels = std::move(answer.choice.wheels);
    locked.pylock = means.tools.index_logins.as_written(std::move(answer.resolution.pylock));
    wheels.add(answer.choice.sources, locked);
    if (job.inputs.lock_file && locked.wheels.empty()) refuse_empty_lock(job);
    break;
  }
  for (const auto& [package, extras] : means.tools.extras)
    if (std::none_of(locked.wheels.begin(), locked.wheels.end(),
                     [&](const LockedWheel& wheel) { return wheel.name == package && wheel.built_from; }))
      progress.warn("nothing was built as " + package +
                    ", for which the job has extra_build_dependencies or extra_build_variables: correct the name, or "
                    "remove them where it has a wheel");
  for (LockedWheel& wheel : locked.wheels) {
    wheel.url = means.tools.index_logins.as_written(std::move(wheel.url));
    if (wheel.built_from) wheel.built_from->url = means.tools.index_logins.as_written(std::move(wheel.built_from->url));
  }
  std::sort(locked.wheels.begin(), locked.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file_name < b.file_name; });
  return locked;
}

}  // namespace sealift::packager
