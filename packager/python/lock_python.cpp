// SPDX-License-Identifier: Apache-2.0
// uv's answer, then what it takes to build of it; see lock_python.hpp.
#include "packager/python/lock_python.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/builds/source_metadata.hpp"
#include "packager/resolve/input_variables.hpp"
#include "packager/resolve/older_releases.hpp"
#include "packager/resolve/signed_addresses.hpp"

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

[[noreturn]] void refuse_empty_lock(const Job& job) {
  throw Error(ErrorCode::Usage,
              {.what = "no package of the lock that the job names is for this target and use",
               .where = job.inputs.lock_file->string(),
               .expected = "packages whose markers hold for CPython " + job.python + " on " + job.target.arch,
               .next = "name extras and groups of the lock in [python], or correct version and [target]"});
}

constexpr int kMostBuildRounds = 20;  // of building and asking once more

void warn_of_unused(const BuildTools& tools, const std::vector<LockedWheel>& wheels, bundle::Progress& progress) {
  for (const auto& [package, extras] : tools.extras)
    if (std::none_of(wheels.begin(), wheels.end(),
                     [&name = package](const LockedWheel& wheel) { return wheel.name == name && wheel.built_from; }))
      progress.warn("nothing was built as " + package +
                    ", for which the job has extra_build_dependencies or extra_build_variables: correct the name, or "
                    "remove them where it has a wheel");
}

}  // namespace

PythonLock::PythonLock(const Job& job, PythonMeans& means, bundle::Progress& progress)
    : job_(job), means_(means), progress_(progress), project_(project_to_build(job)) {}

std::map<std::string, std::string> PythonLock::needs() const {
  return who_needs(job_, means_.tools.uv, means_.uv_python, facts_);
}

void PythonLock::ask() {
  if (++rounds_ > kMostBuildRounds)
    throw Error(ErrorCode::Platform, {.what = "what is built keeps asking for other sources",
                                      .where = job_.file.string(),
                                      .next = "require versions, or constrain them"});
  answer_ = ask_uv(job_, means_, facts_, progress_);
  signed_pages_ = take_signed_addresses(answer_.resolution.pylock, with_inputs(locked_indexes(job_.inputs), job_),
                                        means_.tools.index_logins);
  pylock_ = means_.tools.index_logins.as_written(std::move(answer_.resolution.pylock));
  if (!job_.inputs.build && !answer_.choice.sources.empty()) refuse_sources(answer_.choice.sources, needs());
  if (project_ && !project_->carried)  // it is a source only for what it requires
    std::erase_if(answer_.choice.sources, [&](const SourcePackage& source) { return source.name == project_->name; });
}

bool PythonLock::build() {
  std::vector<SourcePackage> fresh;
  for (const SourcePackage& source : answer_.choice.sources)
    if (!built_.contains(identity_of(source))) fresh.push_back(source);
  BuiltWheels made = build_sources(
      fresh, means_.tools, job_.target, means_.cache, progress_, [&] { return needs(); }, job_.startup_files);
  bool news = false;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (facts_.learn(metadata_of_built(made.wheels[i], means_.cache, job_.startup_files))) news = true;
    built_.insert_or_assign(identity_of(fresh[i]), std::pair(std::move(made.wheels[i]), std::move(made.needs[i])));
  }
  return !news;
}

// All of them are one line on a terminal; the lock and the review page say which, and who holds each.
void PythonLock::warn_of_older(LockedPython& locked) const {
  const std::vector<OlderRelease> older = older_releases(pylock_, job_, means_.tools.uv, means_.uv_python);
  if (older.empty()) return;
  const std::map<std::string, std::string> who = needs();
  std::string names;
  for (const OlderRelease& one : older) {
    names += (names.empty() ? "" : ", ") + one.name + " " + one.version + " (" + one.newest + ")";
    const auto found = who.find(one.name);
    locked.warnings.push_back(one.text() + (found == who.end() ? "" : " (needed by " + found->second + ")"));
  }
  progress_.warn(
      fmt::format("{} of {} packages are older by more than a year than the newest release that fits, which "
                  "is in brackets; the lock says who needs them: {}",
                  older.size(), locked.wheels.size(), names));
}

LockedPython PythonLock::finish() {
  LockedPython locked{.wheels = std::move(answer_.choice.wheels),
                      .needs = {},
                      .facts = facts_,
                      .warnings = std::move(answer_.resolution.warnings),
                      .signed_pages = signed_pages_};
  for (const SourcePackage& source : answer_.choice.sources) {
    const auto& [wheel, need] = built_.at(identity_of(source));
    locked.wheels.push_back(wheel);
    locked.needs.push_back(need);
  }
  if (job_.inputs.lock_file && locked.wheels.empty()) refuse_empty_lock(job_);
  const HttpLogins& logins = means_.tools.index_logins;
  for (LockedWheel& wheel : locked.wheels) {
    wheel.url = logins.as_written(std::move(wheel.url));
    if (wheel.built_from) wheel.built_from->url = logins.as_written(std::move(wheel.built_from->url));
  }
  warn_of_unused(means_.tools, locked.wheels, progress_);
  for (const std::string& warning : locked.warnings) progress_.warn(warning);
  warn_of_older(locked);
  std::sort(locked.wheels.begin(), locked.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file_name < b.file_name; });
  return locked;
}

}  // namespace sealift::packager
