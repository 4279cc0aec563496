// SPDX-License-Identifier: Apache-2.0
// Ask, find the source, ask its backend, ask again; see ask_uv.hpp.
#include "packager/python/ask_uv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/builds/source_metadata.hpp"
#include "packager/host/url.hpp"
#include "packager/resolve/input_logins.hpp"
#include "packager/resolve/input_variables.hpp"
#include "packager/resolve/local_files.hpp"
#include "packager/resolve/remote_metadata.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr int kMostRounds = 300;  // ms-swift[all] takes some forty

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

// While the versions of direct sources are not known, what uv says of them is our own assumption.
std::vector<SourcePackage> direct_sources(const PythonChoice& choice, const SourceFacts& facts) {
  std::vector<SourcePackage> sources;
  for (const SourcePackage& source : choice.sources)
    if (facts.direct.contains(source.name) && !facts.knows(source.name)) sources.push_back(source);
  return sources;
}

class Rounds {
 public:
  Rounds(const Job& job, PythonMeans& means, SourceFacts& facts, bundle::Progress& progress)
      : job_(job), means_(means), facts_(facts), progress_(progress) {}

  UvAnswer run() {
    for (int round = 1; round <= kMostRounds; ++round) {
      Resolution resolution = resolve(job_, means_.tools.uv, means_.uv_python, means_.folder, facts_);
      means_.tools.logins = resolution.logins;
      if (resolution.unread) {
        read_for_uv(*resolution.unread);
        continue;
      }
      if (resolution.question) {
        answer(*resolution.question, resolution.logins, round);
        continue;
      }
      PythonChoice choice =
          choose_packages(resolution.pylock, means_.folder, job_.python, job_.target, resolution.hashes);
      require_own_files(choice, with_inputs(locked_indexes(job_.inputs), job_));
      pin_unpinned(choice, means_.tools.index_logins, means_.cache, progress_);
      for (SourcePackage& source : choice.sources)
        if (facts_.direct.contains(source.name)) source.version.clear();
      if (!facts_.has_unknown() || !job_.inputs.build)
        return {.resolution = std::move(resolution), .choice = std::move(choice)};
      const std::vector<SourcePackage> unknown = direct_sources(choice, facts_);
      if (unknown.empty()) refuse_hidden_sources(facts_, job_);
      for (const SourcePackage& source : unknown) progress_.note("asking what " + source.title() + " requires");
      learn(unknown, [&] { return who_needs(job_, means_.tools.uv, means_.uv_python, facts_); });
    }
    throw Error(ErrorCode::Platform, {.what = "uv keeps asking about other sources",
                                      .where = job_.file.string(),
                                      .expected = fmt::format("an answer after {} of them", kMostRounds),
                                      .got = last_,
                                      .next = "require or constrain a version of it"});
  }

 private:
  void read_for_uv(const std::string& url) {
    SourceMetadata metadata = read_remote_metadata(url, means_.tools.index_logins, job_.startup_files);
    last_ = metadata.name + " " + metadata.version;
    progress_.note("uv cannot read " + shown_url(url) + " and is told what it requires");
    if (!facts_.learn(std::move(metadata)))
      throw Error(ErrorCode::Network, {.what = "uv asks again for a wheel that it was told of",
                                       .where = shown_url(url),
                                       .next = "require another version of it"});
  }

  void answer(const SourceQuestion& question, const GitLogins& logins, int round) {
    last_ = question.title() + (question.needed_by.empty() ? "" : " (needed by " + question.needed_by + ")");
    if (facts_.knows(question.name, question.version))
      throw Error(ErrorCode::CannotCheck, {.what = "uv asks again about a source that it was told of",
                                           .where = job_.file.string(),
                                           .got = last_,
                                           .next = "require another version of it"});
    progress_.note(fmt::format("uv asks what {} requires; round {}", last_, round));
    const SourcePackage source =
        pinned(find_source(job_, means_.tools.uv, means_.uv_python, means_.folder, question, logins));
    learn({source}, [&]() -> std::map<std::string, std::string> {
      if (question.needed_by.empty()) return {};
      return {{question.name, question.needed_by}};
    });
  }

  SourcePackage pinned(SourcePackage source) {
    PythonChoice choice{.wheels = {}, .sources = {std::move(source)}};
    pin_unpinned(choice, means_.tools.index_logins, means_.cache, progress_);
    return std::move(choice.sources.front());
  }

  void learn(const std::vector<SourcePackage>& sources, const WhoNeeds& needs) {
    for (SourceMetadata& metadata :
         read_metadata(sources, means_.tools, job_.target, means_.cache, progress_, needs, job_.startup_files))
      facts_.learn(std::move(metadata));
  }

  const Job& job_;
  PythonMeans& means_;
  SourceFacts& facts_;
  bundle::Progress& progress_;
  std::string last_;
};

}  // namespace

PythonMeans python_means(const Job& job, const fs::path& uv, const std::string& carried, const Interpreter& interpreter,
                         const fs::path& folder, const Cache& cache, Isolation isolation, const fs::path& scratch) {
  GitLogins of_constraints;  // builds take wheels alone, so nobody needs them
  const std::string where = job.file.string() + ", [python]";
  BuildTools tools{.uv = uv,
                   .python = interpreter.executable,
                   .python_version = interpreter.version,
                   .build_constraints = lines_without_logins(job.inputs.build_constraints, where, of_constraints),
                   .extras = job.inputs.builds,
                   .index_words = index_words(job.inputs),
                   .isolation = isolation};
  for (auto& [package, extras] : tools.extras)
    extras.requirements = lines_without_logins(extras.requirements, where, of_constraints);
  UvPython uv_python(interpreter.executable, carried, scratch / "uv-python");
  uv_python.require_silence(uv, scratch);
  return {.tools = std::move(tools), .uv_python = std::move(uv_python), .folder = folder, .cache = cache};
}

UvAnswer ask_uv(const Job& job, PythonMeans& means, SourceFacts& facts, bundle::Progress& progress) {
  means.tools.index_words = index_words(job.inputs);
  means.tools.progress = &progress;
  return Rounds(job, means, facts, progress).run();
}

}  // namespace sealift::packager
