// SPDX-License-Identifier: Apache-2.0
// Calls `uv pip compile`; see resolve.hpp. A lock that the job names goes through it too, as pinned requirements
// without dependencies, because uv evaluates its markers for the target.
#include "packager/resolve/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "bundle/host/scratch_folder.hpp"
#include "packager/host/uv.hpp"
#include "packager/resolve/input_logins.hpp"
#include "packager/resolve/need_chains.hpp"
#include "packager/resolve/prereleases.hpp"
#include "packager/resolve/pylock.hpp"
#include "packager/resolve/source_facts.hpp"
#include "packager/resolve/uv_refusal.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::GlibcVersion;

namespace {

constexpr std::uint64_t kMaxPylock = std::uint64_t{64} << 20;

// uv can resolve for fewer manylinux levels than there are versions of glibc: the nearest that is not newer.
GlibcVersion uv_platform(GlibcVersion target) {
  if (target >= GlibcVersion{2, 40}) return {2, 40};
  if (target >= GlibcVersion{2, 31}) return target;
  return target >= GlibcVersion{2, 28} ? GlibcVersion{2, 28} : GlibcVersion{2, 17};
}

std::string joined(const std::vector<std::string>& texts, const char* separator) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : separator) + text;
  return out;
}

void replace_file(const fs::path& path, const std::vector<std::string>& lines) {
  fs::remove(path);
  bundle::write_text(path, joined(lines, "\n") + "\n");
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

// The packages without a wheel according to uv's message: "Wheels are required for `NAME`".
std::set<std::string> named_without_wheel(const std::string& message) {
  static constexpr std::string_view kStart = "Wheels are required for `";
  std::set<std::string> names;
  for (std::size_t at = message.find(kStart); at != message.npos; at = message.find(kStart, at)) {
    at += kStart.size();
    const std::string name = message.substr(at, message.find('`', at) - at);
    names.insert(name.substr(0, name.find_first_of(" =<>")));
  }
  return names;
}

// The folders and repositories that uv may not build to learn about them: "Failed to build `NAME @ …`",
// "Failed to download and build `NAME==1`".
std::set<std::string> named_unbuildable(const std::string& message) {
  static constexpr std::string_view kStart = "build `";
  std::set<std::string> names;
  for (std::size_t at = message.find(kStart); at != message.npos; at = message.find(kStart, at)) {
    at += kStart.size();
    if (message.rfind("Failed to ", at) == message.npos) continue;
    const std::string name = message.substr(at, message.find('`', at) - at);
    names.insert(name.substr(0, name.find_first_of(" =<>@[")));
  }
  return names;
}

// Who needs `name`, from uv's explanation: "... ms-swift==4.6.0 depends on oss2 ..."; empty when it does not say.
std::string needed_by(const std::string& message, const std::string& name) {
  const std::string words = " depends on " + name;
  for (std::size_t at = message.find(words); at != message.npos; at = message.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if (end < message.size() && (std::isalnum(static_cast<unsigned char>(message[end])) || message[end] == '-'))
      continue;  // another package, whose name only begins so
    const std::size_t begin = message.find_last_of(" \n", at - 1) + 1;
    return " (needed by " + message.substr(begin, at - begin) + ")";
  }
  return {};
}

// Writes the job's lock as a requirements file.
void write_locked(const Job& job, const fs::path& uv, const fs::path& file, GitLogins& logins) {
  const fs::path& lock = *job.inputs.lock_file;
  if (!job.inputs.is_uv_lock()) {
    const auto lines = pylock_as_requirements(bundle::read_text(lock, kMaxPylock), lock.parent_path());
    replace_file(file, lines_without_logins(lines, lock.string(), logins));
    return;
  }
  std::vector<std::string> command = {uv.string(),     "export",
                                      "--project",     lock.parent_path().string(),
                                      "--format",      "requirements-txt",
                                      "--frozen",      "--no-emit-project",
                                      "--no-editable", "--no-default-groups",
                                      "--no-annotate", "--no-header",
                                      "--quiet",       "-o",
                                      file.string()};
  for (const std::string& extra : job.inputs.extras) command.insert(command.end(), {"--extra", extra});
  for (const std::string& group : job.inputs.groups) command.insert(command.end(), {"--group", group});
  const ProcessResult result = run_uv(command);
  if (result.exit_code != 0)
    throw Error(ErrorCode::Format, {.what = "uv cannot read the lock that the job names",
                                    .where = lock.string(),
                                    .expected = "a uv.lock beside its pyproject.toml",
                                    .got = result.err,
                                    .next = "run `uv lock` there, or correct extras and groups"});
  replace_file(file, {logins.take(bundle::read_text(file, kMaxPylock), lock.string())});
}

// `uv pip compile` for the job, without the format of its answer; the files that it reads are in `scratch`, and hold no
// login of a repository.
std::vector<std::string> compile_command(const Job& job, const fs::path& uv, const fs::path& python,
                                         const fs::path& scratch, RequirementHashes* hashes, GitLogins& logins) {
  const PythonInputs& inputs = job.inputs;
  const std::string where = job.file.string() + ", [python]";
  replace_file(scratch / "requirements.in", lines_without_logins(inputs.requirements, where, logins));
  std::vector<std::string> command = {uv.string(), "pip", "compile", (scratch / "requirements.in").string()};
  std::optional<fs::path> hashed = inputs.requirements_file;
  if (inputs.lock_file) {
    hashed = scratch / "locked.txt";
    write_locked(job, uv, *hashed, logins);
    command.push_back("--no-deps");
  }
  if (hashed) {
    command.push_back(file_without_logins(*hashed, scratch, logins).string());
    if (hashes != nullptr) *hashes = read_requirement_hashes(*hashed);
  }
  if (inputs.pyproject) {
    refuse_logins_in(*inputs.pyproject);
    command.push_back(inputs.pyproject->string());
    for (const std::string& extra : inputs.extras) command.insert(command.end(), {"--extra", extra});
    for (const std::string& group : inputs.groups)
      command.insert(command.end(), {"--group", inputs.pyproject->string() + ":" + group});
  }
  if (!inputs.constraints.empty()) {
    replace_file(scratch / "constraints.txt", lines_without_logins(inputs.constraints, where, logins));
    command.insert(command.end(), {"--constraints", (scratch / "constraints.txt").string()});
  }
  if (!inputs.excludes.empty()) {
    replace_file(scratch / "excludes.txt", inputs.excludes);
    command.insert(command.end(), {"--excludes", (scratch / "excludes.txt").string()});
  }
  for (const std::string& word : index_words(inputs)) command.push_back(word);
  const GlibcVersion level = uv_platform(job.target.glibc);
  command.insert(command.end(),
                 {"--directory", fs::absolute(job.file).parent_path().string(), "--python-platform",
                  fmt::format("{}-manylinux_{}_{}", job.target.arch, level.major, level.minor), "--python-version",
                  job.python, "--python", python.string(), "--no-header", "--quiet"});
  return command;
}

// The command with what is known of sources by now.
std::vector<std::string> with_facts(std::vector<std::string> command, const SourceFacts& facts, const fs::path& scratch,
                                    GitLogins& logins) {
  const fs::path file = scratch / "uv-sources.toml";
  fs::remove(file);
  bundle::write_text(file, logins.take(write_source_facts(facts), "what a package requires"));
  command.insert(command.end(), {"--config-file", file.string()});
  for (const std::string& word : source_words(facts)) command.push_back(word);
  const bool shallow = std::find(command.begin(), command.end(), "--no-deps") != command.end();
  if (facts.has_unknown() && !shallow) command.emplace_back("--no-deps");  // a version is not known yet
  return command;
}

// The packages that uv's message says it needs the source of are added to `facts`; returns those that are new.
std::vector<std::string> learn(const std::string& message, SourceFacts& facts) {
  std::vector<std::string> fresh;
  const auto add = [&](const std::set<std::string>& names, std::set<std::string>& known) {
    for (const std::string& name : names)
      if (const std::string plain = bundle::normalized_project_name(name);
          !facts.of_indexes.contains(plain) && known.insert(plain).second)
        fresh.push_back(plain);
  };
  add(named_unbuildable(message), facts.direct);
  std::set<std::string> without_wheel = named_without_wheel(message);
  std::erase_if(without_wheel, [&](const std::string& name) { return facts.direct.contains(name); });
  add(without_wheel, facts.of_indexes);
  return fresh;
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

Resolution resolve(const Job& job, const fs::path& uv, const fs::path& python, const fs::path& folder,
                   SourceFacts& facts) {
  const bundle::ScratchFolder scratch("sealift-resolve");
  Resolution resolution;
  std::vector<std::string> command =
      compile_command(job, uv, python, scratch.path(), &resolution.hashes, resolution.logins);
  // Written into its final folder, since uv makes the paths in it relative to that; under a temporary name, since uv
  // would keep the versions of an existing file; and under one that no other lock in that folder has, which would take
  // this answer for its own.
  fs::create_directories(folder);
  const std::string own_name = scratch.path().filename().string();
  const bundle::ScratchFile answer(fs::absolute(folder) /
                                   ("pylock.being-made-" + own_name.substr(own_name.size() - 6) + ".toml"));
  command.insert(command.end(), {"--format", "pylock.toml", "-o", answer.path().string()});
  std::vector<std::string> without_wheels;
  for (;;) {  // uv names one package without wheels at a time
    const std::vector<std::string> words = with_facts(command, facts, scratch.path(), resolution.logins);
    const ProcessResult result = run_uv(words, resolution.logins.variables());
    const bool answered = result.exit_code == 0;
    const std::vector<std::string> fresh =
        answered ? released_as_sources(bundle::read_text(answer.path(), kMaxPylock), job, uv, python, facts)
                 : learn(result.err, facts);
    if (answered && fresh.empty()) break;
    fs::remove(answer.path());
    for (const std::string& name : fresh) without_wheels.push_back(name + needed_by(result.err, name));
    if (!fresh.empty()) continue;
    if (!without_wheels.empty() && !job.inputs.build) refuse_without_wheels(without_wheels);
    if (result.err.find("Building source distributions is disabled") != std::string::npos) refuse_nameless(result.err);
    const UvRefusal refusal = refusal_of(result.err);
    throw Error(refusal.code, {.what = refusal.what,
                               .where = job.file.string(),
                               .expected = fmt::format("one set of packages for CPython {} on {}, glibc {}", job.python,
                                                       job.target.arch, job.target.glibc.text()),
                               .got = result.err,
                               .next = refusal.next});
  }
  if (!without_wheels.empty() && !job.inputs.build) refuse_without_wheels(without_wheels);
  resolution.pylock = bundle::read_text(answer.path(), kMaxPylock);
  return resolution;
}

std::map<std::string, std::string> who_needs(const Job& job, const fs::path& uv, const fs::path& python,
                                             const SourceFacts& facts) {
  const bundle::ScratchFolder scratch("sealift-resolve");
  GitLogins logins;
  std::vector<std::string> command = compile_command(job, uv, python, scratch.path(), nullptr, logins);
  command.insert(command.end(), {"--annotation-style", "line"});
  command = with_facts(std::move(command), facts, scratch.path(), logins);
  const ProcessResult result = run_uv(command, logins.variables());
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
