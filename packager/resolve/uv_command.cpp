// SPDX-License-Identifier: Apache-2.0
// uv's arguments; see uv_command.hpp. A lock that the job names goes to uv as pinned requirements without dependencies,
// because uv evaluates its markers for the target.
#include "packager/resolve/uv_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/host/url.hpp"
#include "packager/host/uv.hpp"
#include "packager/resolve/input_logins.hpp"
#include "packager/resolve/project_source.hpp"
#include "packager/resolve/pylock.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::GlibcVersion;

namespace {

constexpr std::uint64_t kMaxLock = std::uint64_t{64} << 20;

// uv can resolve for fewer manylinux levels than there are versions of glibc: the nearest that is not newer.
GlibcVersion uv_platform(GlibcVersion target) {
  if (target >= GlibcVersion{2, 40}) return {2, 40};
  if (target >= GlibcVersion{2, 31}) return target;
  return target >= GlibcVersion{2, 28} ? GlibcVersion{2, 28} : GlibcVersion{2, 17};
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

void replace_file(const fs::path& path, const std::vector<std::string>& lines) {
  fs::remove(path);
  bundle::write_text(path, joined_lines(lines));
}

// Writes the job's lock as a requirements file.
void write_locked(const Job& job, const fs::path& uv, const fs::path& file, GitLogins& logins) {
  const fs::path& lock = *job.inputs.lock_file;
  if (!job.inputs.is_uv_lock()) {
    const auto lines = pylock_as_requirements(bundle::read_text(lock, kMaxLock), lock.parent_path(), job.python,
                                              job.target, job.inputs.extras, job.inputs.groups);
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
  std::vector<std::string> lines = requirement_lines(bundle::read_text(file, kMaxLock));
  for (std::string& line : lines) {
    // Relative to the lock's folder; uv would take it from the job's.
    if (line.starts_with('.'))
      line = file_url((lock.parent_path() / line.substr(0, line.find(" ;"))).lexically_normal()) +
             (line.find(" ;") == line.npos ? "" : line.substr(line.find(" ;")));
    line = logins.take(line, lock.string());
  }
  replace_file(file, lines);
}

// The indexes that a lock names. Each of its files may be in any of them: it is known by its hash.
void add_indexes_of_lock(const PythonInputs& inputs, const fs::path& as_requirements,
                         std::vector<std::string>& command) {
  const std::vector<std::string> indexes = indexes_of_lock(bundle::read_text(*inputs.lock_file, kMaxLock));
  for (const std::string& index : indexes) command.insert(command.end(), {"--index", index});
  const std::vector<std::string> lines = requirement_lines(bundle::read_text(as_requirements, kMaxLock));
  const bool all_hashed = std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("==") == line.npos || line.find(" --hash=") != line.npos;
  });
  if (!indexes.empty() && all_hashed && inputs.index_strategy.empty())
    command.insert(command.end(), {"--index-strategy", "unsafe-best-match"});
}

// A project whose dependencies only its build tells, as a requirement.
std::string requirement_of(const ProjectSource& project, const std::vector<std::string>& extras) {
  std::string list;
  for (const std::string& extra : extras) list += (list.empty() ? "[" : ",") + extra;
  return project.name + list + (list.empty() ? "" : "]") + " @ " + file_url(project.folder);
}

// For which machine, with which Python, and where relative paths begin.
std::vector<std::string> target_words(const Job& job, const UvPython& python) {
  const GlibcVersion level = uv_platform(job.target.glibc);
  return {"--directory",       fs::absolute(job.file).parent_path().string(),
          "--python-platform", fmt::format("{}-manylinux_{}_{}", job.target.arch, level.major, level.minor),
          "--python-version",  python.version(),
          "--python",          python.path().string(),
          "--no-header"};
}

// The options of requirements files that name indexes, as a file in another folder says them.
std::vector<std::string> index_options(const fs::path& file) {
  std::vector<std::string> lines;
  for (const auto& [option, value, folder] : index_options_of(file)) {
    std::error_code ignored;
    const fs::path local = fs::absolute(folder / value);
    lines.push_back(option + " " + (fs::exists(local, ignored) ? local.string() : value));
  }
  return lines;
}

}  // namespace

std::vector<std::string> compile_command(const Job& job, const fs::path& uv, const UvPython& python,
                                         const fs::path& scratch, RequirementHashes* hashes, GitLogins& logins) {
  const PythonInputs& inputs = job.inputs;
  const std::string where = job.file.string() + ", [python]";
  std::vector<std::string> requirements = lines_without_logins(inputs.requirements, where, logins);
  const std::optional<ProjectSource> unread = project_to_build(job);
  if (unread) requirements.push_back(requirement_of(*unread, inputs.extras));
  replace_file(scratch / "requirements.in", requirements);
  std::vector<std::string> command = {uv.string(), "pip", "compile"};
  const bool others = inputs.requirements_file || inputs.lock_file || (inputs.pyproject && !unread);
  if (!requirements.empty() || !others)  // of an empty file beside another one uv warns
    command.push_back((scratch / "requirements.in").string());
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
    if (!unread) command.push_back(inputs.pyproject->string());
    for (const std::string& extra : inputs.extras)
      if (!unread) command.insert(command.end(), {"--extra", extra});
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
  if (inputs.lock_file) add_indexes_of_lock(inputs, *hashed, command);
  for (const std::string& word : target_words(job, python)) command.push_back(word);
  return command;
}

std::vector<std::string> with_facts(std::vector<std::string> command, const Job& job, const SourceFacts& facts,
                                    const fs::path& scratch, GitLogins& logins) {
  const fs::path file = scratch / "uv-sources.toml";
  fs::remove(file);
  bundle::write_text(file, logins.take(write_source_facts(facts), "what a package requires"));
  command.insert(command.end(), {"--config-file", file.string()});
  if (job.inputs.build) command.emplace_back("--no-build-isolation");  // uv gets no tools of builds
  if (!job.inputs.build)
    for (const std::string& word : source_words(facts)) command.push_back(word);
  const bool shallow = std::find(command.begin(), command.end(), "--no-deps") != command.end();
  if (facts.has_unknown() && !shallow) command.emplace_back("--no-deps");  // a version is not known yet
  return command;
}

std::vector<std::string> source_command(const Job& job, const fs::path& uv, const UvPython& python,
                                        const fs::path& scratch, const std::string& name, const std::string& version,
                                        const fs::path& answer) {
  std::vector<std::string> lines;
  if (job.inputs.requirements_file) lines = index_options(*job.inputs.requirements_file);
  lines.push_back(name + "==" + version);
  replace_file(scratch / "source.in", lines);
  SourceFacts nothing_required;
  nothing_required.built.push_back(
      {.name = name, .version = version, .requires_dist = {}, .extras = {}, .requires_python = {}});
  replace_file(scratch / "source.toml", {write_source_facts(nothing_required)});
  std::vector<std::string> command = {uv.string(), "pip", "compile", (scratch / "source.in").string()};
  for (const std::string& word : index_words(job.inputs)) command.push_back(word);
  for (const std::string& word : target_words(job, python)) command.push_back(word);
  command.insert(command.end(),
                 {"--no-build-isolation", "--no-deps", "--no-binary", name, "--config-file",
                  (scratch / "source.toml").string(), "--quiet", "--format", "pylock.toml", "-o", answer.string()});
  return command;
}

std::vector<std::string> newest_command(const Job& job, const fs::path& uv, const UvPython& python,
                                        const fs::path& scratch, const std::vector<std::string>& names,
                                        const fs::path& answer) {
  std::vector<std::string> lines;
  if (job.inputs.requirements_file) lines = index_options(*job.inputs.requirements_file);
  lines.insert(lines.end(), names.begin(), names.end());
  replace_file(scratch / "newest.in", lines);
  SourceFacts nothing_required;  // so uv reads and builds none of them
  for (const std::string& name : names)
    nothing_required.built.push_back(
        {.name = name, .version = {}, .requires_dist = {}, .extras = {}, .requires_python = {}});
  replace_file(scratch / "newest.toml", {write_source_facts(nothing_required)});
  std::vector<std::string> command = {uv.string(), "pip", "compile", (scratch / "newest.in").string()};
  for (const std::string& word : index_words(job.inputs)) command.push_back(word);
  for (const std::string& word : target_words(job, python)) command.push_back(word);
  command.insert(command.end(),
                 {"--no-build-isolation", "--no-deps", "--config-file", (scratch / "newest.toml").string(), "--quiet",
                  "--format", "pylock.toml", "-o", answer.string()});
  if (!job.inputs.build) command.insert(command.end(), {"--only-binary", ":all:"});
  return command;
}

}  // namespace sealift::packager
