// SPDX-License-Identifier: Apache-2.0
// Calls `uv pip compile`; see resolve.hpp.
#include "packager/resolve/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "bundle/host/scratch_folder.hpp"
#include "packager/host/uv.hpp"
#include "packager/resolve/input_variables.hpp"
#include "packager/resolve/local_files.hpp"
#include "packager/resolve/need_chains.hpp"
#include "packager/resolve/prereleases.hpp"
#include "packager/resolve/pylock.hpp"
#include "packager/resolve/uv_command.hpp"
#include "packager/resolve/uv_refusal.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxPylock = std::uint64_t{64} << 20;

std::string joined(const std::vector<std::string>& texts, const char* separator) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : separator) + text;
  return out;
}

[[noreturn]] void refuse_without_wheels(const std::vector<std::string>& packages) {
  throw Error(ErrorCode::Platform,
              {.what = fmt::format("{} package(s) have no wheel and would have to be built", packages.size()),
               .expected = "a wheel for every package, because the job says build = false",
               .got = joined(packages, ", "),
               .next = "leave build = false out, or require versions that have wheels"});
}

[[noreturn]] void refuse_nameless(const std::string& said) {
  throw Error(
      ErrorCode::Usage,
      {.what = "the job names a source whose package name is known only to its own code, which is not run for that",
       .expected = "NAME @ before its path or address; a [project] table with a name; or setup.cfg with one",
       .got = said,
       .next = "write \"NAME @ ./folder\" in requirements"});
}

// The packages that uv's message says it needs the source of are added to `facts`; returns the new ones. With
// builds these are what the job names directly; without, also what has no wheel.
std::vector<std::string> learn(const std::string& message, bool builds, SourceFacts& facts) {
  std::vector<std::string> fresh;
  const auto add = [&](const std::set<std::string>& names, std::set<std::string>& known) {
    for (const std::string& name : names)
      if (const std::string plain = bundle::normalized_project_name(name);
          !facts.of_indexes.contains(plain) && known.insert(plain).second)
        fresh.push_back(plain);
  };
  add(named_unbuildable(message), facts.direct);
  if (builds) return fresh;
  std::set<std::string> without_wheel = named_without_wheel(message);
  std::erase_if(without_wheel, [&](const std::string& name) { return facts.direct.contains(name); });
  add(without_wheel, facts.of_indexes);
  return fresh;
}

// What git needs, and what the requirements name.
std::map<std::string, std::string> variables_for(const Job& job, const GitLogins& logins) {
  std::map<std::string, std::string> variables = logins.variables();
  variables.merge(input_variables(job));
  return variables;
}

[[noreturn]] void refuse(const Job& job, const std::string& uv_said) {
  const HttpLogins logins = index_logins(with_inputs(locked_indexes(job.inputs), job));
  const std::string said = logins.as_written(uv_said), closed = closed_server(said);
  const bool stopped =
      said.find("Building source distributions is disabled") != said.npos || said.find(kRunsNothing) != said.npos;
  if (stopped && named_unbuildable(said).empty()) refuse_nameless(said);
  const UvRefusal refusal = refusal_of(said);
  const std::string login = closed.empty() ? "" : logins.remedy(closed);
  throw Error(refusal.code, {.what = refusal.what,
                             .where = job.file.string(),
                             .expected = fmt::format("one set of packages for CPython {} on {}, glibc {}", job.python,
                                                     job.target.arch, job.target.glibc.text()),
                             .got = said,
                             .next = login.empty() || refusal.or_login ? refusal.next + login : login});
}

// Where uv writes its answer: in its final folder, since uv makes the paths in it relative to that; under a temporary
// name, since uv would keep the versions of an existing file; and under one that no other lock in that folder has,
// which would take this answer for its own.
fs::path answer_in(const fs::path& folder, const fs::path& scratch) {
  fs::create_directories(folder);
  const std::string own_name = scratch.filename().string();
  return fs::absolute(folder) / ("pylock.being-made-" + own_name.substr(own_name.size() - 6) + ".toml");
}

}  // namespace

fs::path find_uv(const fs::path& given) {
  const char* variable = std::getenv("SEALIFT_UV");
  const fs::path uv = !given.empty() ? given : variable != nullptr ? fs::path(variable) : find_program("uv");
  if (uv.empty() || !fs::exists(uv))
    throw Error(ErrorCode::Missing,
                {.what = "uv, which resolves the requirements, is not installed",
                 .where = uv.empty() ? "PATH" : uv.string(),
                 .next = "install uv (it is a package on PyPI), or name it with --uv or SEALIFT_UV"});
  return uv;
}

Resolution resolve(const Job& job, const fs::path& uv, const UvPython& python, const fs::path& folder,
                   SourceFacts& facts) {
  const bundle::ScratchFolder scratch("sealift-resolve");
  Resolution resolution;
  std::vector<std::string> command =
      compile_command(job, uv, python, scratch.path(), &resolution.hashes, resolution.logins);
  const bundle::ScratchFile answer(answer_in(folder, scratch.path()));
  command.insert(command.end(), {"--format", "pylock.toml", "-o", answer.path().string()});
  std::vector<std::string> without_wheels;
  for (;;) {  // uv names one package at a time
    const std::vector<std::string> words = with_facts(command, job, facts, scratch.path(), resolution.logins);
    std::map<std::string, std::string> variables = variables_for(job, resolution.logins);
    variables.emplace("RUST_LOG", kTellsSkipped);
    const ProcessResult result = run_uv(words, variables);
    const bool answered = result.exit_code == 0;
    if (!answered && job.inputs.build) resolution.question = question_in(result.err);
    if (!answered) resolution.unread = unread_wheel_in(result.err);
    if (resolution.question || resolution.unread) return resolution;
    std::vector<std::string> fresh;
    if (!answered)
      fresh = learn(result.err, job.inputs.build, facts);
    else if (!job.inputs.build)
      fresh = released_as_sources(bundle::read_text(answer.path(), kMaxPylock), job, uv, python, facts);
    if (answered && fresh.empty()) {
      resolution.warnings = warnings_in(result.err);
      break;
    }
    fs::remove(answer.path());
    for (const std::string& name : fresh) without_wheels.push_back(name + needed_by(result.err, name));
    if (!fresh.empty()) continue;
    if (!without_wheels.empty() && !job.inputs.build) refuse_without_wheels(without_wheels);
    refuse(job, result.err);
  }
  if (!without_wheels.empty() && !job.inputs.build) refuse_without_wheels(without_wheels);
  resolution.pylock = HttpLogins().take(bundle::read_text(answer.path(), kMaxPylock));
  return resolution;
}

SourcePackage find_source(const Job& job, const fs::path& uv, const UvPython& python, const fs::path& folder,
                          const SourceQuestion& question, const GitLogins& logins) {
  const bundle::ScratchFolder scratch("sealift-source");
  const bundle::ScratchFile answer(answer_in(folder, scratch.path()));
  const ProcessResult result =
      run_uv(source_command(job, uv, python, scratch.path(), question.name, question.version, answer.path()),
             variables_for(job, logins));
  if (result.exit_code != 0) refuse(job, result.err);
  PythonChoice choice = choose_packages(bundle::read_text(answer.path(), kMaxPylock), folder, job.python, job.target);
  require_own_files(choice, with_inputs(locked_indexes(job.inputs), job));
  if (choice.sources.size() != 1 || choice.sources[0].name != question.name)
    throw Error(ErrorCode::CannotCheck, {.what = "uv asks about a source that its indexes do not show",
                                         .where = job.file.string(),
                                         .expected = question.title() + " as one file",
                                         .next = "require another version of " + question.name});
  return std::move(choice.sources[0]);
}

std::map<std::string, std::string> who_needs(const Job& job, const fs::path& uv, const UvPython& python,
                                             const SourceFacts& facts) {
  const bundle::ScratchFolder scratch("sealift-resolve");
  GitLogins logins;
  std::vector<std::string> command = compile_command(job, uv, python, scratch.path(), nullptr, logins);
  command.insert(command.end(), {"--annotation-style", "line", "--quiet"});
  command = with_facts(std::move(command), job, facts, scratch.path(), logins);
  const ProcessResult result = run_uv(command, variables_for(job, logins));
  DirectNeeds needs;
  if (result.exit_code != 0) return {};
  static constexpr std::string_view kVia = "# via ";
  for (std::size_t begin = 0; begin < result.out.size();) {
    const std::size_t end = std::min(result.out.find('\n', begin), result.out.size());
    const std::string line = result.out.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t at = line.find(kVia);
    if (at == line.npos) continue;
    std::vector<std::string>& who = needs[bundle::normalized_project_name(line.substr(0, line.find_first_of(" =@[")))];
    for (std::size_t from = at + kVia.size(); from < line.size();) {
      const std::size_t to = std::min(line.find(", ", from), line.size());
      const std::string by = line.substr(from, to - from);
      from = to + 2;
      if (by.starts_with("-c ")) continue;  // a constraint needs nothing
      // The job's own requirements are in a temporary file, whose name means nothing to the reader.
      who.push_back(by.starts_with("-r " + scratch.path().string()) ? "the job" : by);
    }
  }
  return need_chains(needs);
}

}  // namespace sealift::packager
