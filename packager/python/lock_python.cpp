// SPDX-License-Identifier: Apache-2.0
// Resolves, chooses, builds; see lock_python.hpp.
#include "packager/python/lock_python.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "packager/resolve/input_logins.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
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

SourceMetadata metadata_in(const LockedWheel& wheel, const SourcePackage& source, const Job& job, const Cache& cache) {
  bundle::FileSource bytes(cache.path(wheel.sha256));
  const bundle::Wheel opened(bytes, wheel.file_name, allowed_files(job.startup_files, source.name));
  return metadata_of(source.name, wheel.version, opened.metadata());
}

// Wheels of sources by what they were built from. What is built tells uv more, and uv may then choose other sources.
class SourceWheels {
 public:
  // Builds those of `sources` that are new, and adds what they tell to `facts`; false when there were none.
  bool build(const std::vector<SourcePackage>& sources, const BuildTools& tools, const Job& job, const Cache& cache,
             bundle::Progress& progress, const WhoNeeds& needs, SourceFacts& facts) {
    std::vector<SourcePackage> fresh;
    for (const SourcePackage& source : sources)
      if (!built_.contains(identity_of(source))) fresh.push_back(source);
    if (fresh.empty()) return false;
    BuiltWheels made = build_sources(fresh, tools, job.target, cache, progress, needs, job.startup_files);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      facts.built.push_back(metadata_in(made.wheels[i], fresh[i], job, cache));
      built_.insert_or_assign(identity_of(fresh[i]), std::pair(std::move(made.wheels[i]), std::move(made.needs[i])));
    }
    return true;
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

// What is to be built after this answer of uv. While the versions of direct sources are not known, only those are, and
// what uv says of their versions is our own assumption.
std::vector<SourcePackage> sources_of(PythonChoice& choice, const SourceFacts& facts) {
  for (SourcePackage& source : choice.sources)
    if (facts.direct.contains(source.name)) source.version.clear();
  std::vector<SourcePackage> sources = choice.sources;
  if (facts.has_unknown())
    std::erase_if(sources, [&](const SourcePackage& source) { return !facts.direct.contains(source.name); });
  return sources;
}

// What a source requires by an address is not the job's own, so uv did not list it while it was unknown.
[[noreturn]] void refuse_hidden_sources(const SourceFacts& facts, const Job& job) {
  std::string names;
  for (const std::string& name : facts.direct)
    if (std::none_of(facts.built.begin(), facts.built.end(), [&](const auto& built) { return built.name == name; }))
      names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::Usage, {.what = "a source requires another one by its address, which the job does not name",
                                 .where = job.file.string(),
                                 .expected = "each folder, repository and archive in requirements",
                                 .got = names,
                                 .next = "write \"NAME @ …\" for it in requirements, too"});
}

constexpr int kMostRounds = 50;  // of resolving and building

}  // namespace

LockedPython lock_python(const Job& job, const fs::path& uv, const Interpreter& interpreter, const fs::path& folder,
                         const Cache& cache, bundle::Progress& progress, Isolation isolation) {
  GitLogins of_constraints;  // builds take wheels alone, so nobody needs them
  BuildTools tools{.uv = uv,
                   .python = interpreter.executable,
                   .python_version = interpreter.version,
                   .build_constraints = lines_without_logins(job.inputs.build_constraints,
                                                             job.file.string() + ", [python]", of_constraints),
                   .extras = job.inputs.builds,
                   .index_words = index_words(job.inputs),
                   .isolation = isolation};
  for (auto& [package, extras] : tools.extras)
    extras.requirements = lines_without_logins(extras.requirements, job.file.string() + ", [python]", of_constraints);
  LockedPython locked;
  const auto needs = [&] { return who_needs(job, uv, interpreter.executable, locked.facts); };
  SourceWheels wheels;
  for (int round = 0;; ++round) {
    Resolution resolution = resolve(job, uv, interpreter.executable, folder, locked.facts);
    tools.logins = resolution.logins;
    PythonChoice choice = choose_packages(resolution.pylock, folder, job.python, job.target, resolution.hashes);
    if (!job.inputs.build && !choice.sources.empty()) refuse_sources(choice.sources, needs());
    if (wheels.build(sources_of(choice, locked.facts), tools, job, cache, progress, needs, locked.facts)) {
      if (round < kMostRounds) continue;
      throw Error(ErrorCode::Platform, {.what = "what is built keeps asking for other sources",
                                        .where = job.file.string(),
                                        .next = "require versions, or constrain them"});
    }
    if (locked.facts.has_unknown()) refuse_hidden_sources(locked.facts, job);
    locked.wheels = std::move(choice.wheels);
    locked.pylock = std::move(resolution.pylock);
    wheels.add(choice.sources, locked);
    break;
  }
  for (const auto& [package, extras] : tools.extras)
    if (std::none_of(locked.wheels.begin(), locked.wheels.end(),
                     [&](const LockedWheel& wheel) { return wheel.name == package && wheel.built_from; }))
      progress.warn("nothing was built as " + package +
                    ", for which the job has extra_build_dependencies or extra_build_variables: correct the name, or "
                    "remove them where it has a wheel");
  std::sort(locked.wheels.begin(), locked.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file_name < b.file_name; });
  return locked;
}

}  // namespace sealift::packager
