// SPDX-License-Identifier: Apache-2.0
// Reads and checks a job file; see job.hpp.
#include "packager/job/job.hpp"

#include <algorithm>
#include <set>

#include "packager/job/fleet_profile.hpp"
#include "packager/tables/apt_toml.hpp"
#include "packager/tables/image_toml.hpp"
#include "packager/tables/kernel_toml.hpp"
#include "packager/tables/model_toml.hpp"
#include "packager/tables/rpm_toml.hpp"
#include "packager/tables/target_profile.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/manifest/variables.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

fs::path resolved(const fs::path& folder, const std::string& text) {
  return fs::absolute(folder / text).lexically_normal();
}

void read_payload_digest(TomlTable& table, Job& job) {
  const std::string name = table.string_or("payload_digest", name_of(job.payload_digest));
  const std::optional<bundle::DigestAlgorithm> algorithm = bundle::digest_algorithm(name);
  if (!algorithm) table.refuse("payload_digest", "this is not a digest algorithm for chunks", "sha256 or sm3", name);
  job.payload_digest = *algorithm;
}

// A built-in profile, a file, or a folder of the probes of a fleet.
void read_profile_of(const std::string& profile, const fs::path& folder, Job& job) {
  const std::vector<std::string> shipped = shipped_profiles();
  std::error_code unreadable;  // such as a name that is too long
  if (std::find(shipped.begin(), shipped.end(), profile) != shipped.end() || profile.empty() ||
      !fs::is_directory(resolved(folder, profile), unreadable)) {
    job.target = find_profile(profile, folder);
    return;
  }
  FleetProfile fleet = read_fleet(resolved(folder, profile));
  job.target = std::move(fleet.target);
  job.fleet_floors = std::move(fleet.floors);
}

// Where libraries for another kind of processor are.
fs::path read_system(TomlTable& table, const fs::path& folder) {
  const fs::path system = resolved(folder, table.string("system"));
  std::error_code unreadable;
  if (!fs::is_directory(system / "usr/lib", unreadable) && !fs::is_directory(system / "lib", unreadable))
    table.refuse("system", "this is not the root of a system", "a folder with usr/lib in it", system.string(),
                 "mmdebstrap --architectures=arm64 --variant=extract makes one; the path is relative to the job file");
  return system;
}

// The profile's values, and those of the job file, which override them.
void read_target(TomlTable table, const fs::path& folder, Job& job) {
  table.attempt([&] {
    if (table.has("profile"))
      read_profile_of(table.string("profile"), folder, job);
    else
      table.string("arch");
  });
  const bool has_profile = table.is_good();
  read_target_keys(table, job.target);
  table.attempt([&] {
    if (has_profile && bundle::loader_name(job.target.arch).empty())
      table.refuse("arch", "the target's architecture is not supported", "x86_64 or aarch64", job.target.arch);
  });
  table.attempt([&] {  // refuses, because it is missing
    if (has_profile && job.target.glibc == bundle::GlibcVersion{}) table.string("glibc");
  });
  table.attempt([&] { job.overruled = read_overruled(table); });
  table.attempt([&] { job.host_libraries = read_host_libraries(table, folder); });
  table.attempt([&] {
    const std::string runtime = table.string_or("runtime", "target");
    if (runtime != "target" && runtime != "carried")
      table.refuse("runtime", "the C library is the target's or a carried one", "target or carried", runtime);
    job.carries_runtime = runtime == "carried";
  });
  table.attempt([&] {
    if (table.has("system")) job.system = read_system(table, folder);
  });
  table.done();
}

void read_python(TomlTable table, const fs::path& folder, Job& job) {
  table.attempt([&] {
    job.python = table.string("version");
    const bool good =
        job.python.size() >= 3 && job.python.starts_with("3.") &&
        std::all_of(job.python.begin() + 2, job.python.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!good) table.refuse("version", "the Python version is not MAJOR.MINOR", "like \"3.11\"", job.python);
  });
  table.attempt([&] {
    const std::string interpreter = table.string_or("interpreter", "auto");
    job.interpreter = interpreter == "auto" ? interpreter : resolved(folder, interpreter).string();
  });
  table.attempt([&] {
    if (!table.has("interpreter_sha256")) return;
    const std::string text = table.string("interpreter_sha256");
    job.interpreter_sha256 = bundle::Digest::from_hex(text);
    if (!job.interpreter_sha256)
      table.refuse("interpreter_sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits", text);
  });
  job.inputs = read_python_inputs(table, folder);
  table.attempt([&] {
    job.imports = table.strings("imports");
    for (const std::string& module : job.imports)
      if (!bundle::is_plain_name(module))
        table.refuse("imports", "this is not a module name", "like \"torch\" or \"torch.nn\"", module);
  });
  table.done();
}

// What a job without [python] can carry: what needs no interpreter, nor libraries that are carried beside one.
void check_without_python(TomlTable& table, const Job& job) {
  for (const char* key : {"owner", "shared", "startup", "toolchain", "program", "golden", "sdk", "kernel", "squashfs"})
    if (table.has(key))
      table.refuse(key, "this is for a bundle with an interpreter", "an interpreter, by [python]", {},
                   "add [python], or leave this out");
  if (job.carries_runtime)
    table.refuse("target", "a glibc is carried for an interpreter and what it loads", "an interpreter, by [python]", {},
                 "leave runtime out");
  if (job.models.empty() && job.images.empty() && job.apt.packages.empty() && job.rpm.packages.empty())
    table.refuse_missing("python", "there is nothing to pack",
                         "[python]; or [[model]], [[data]], [[image]], [apt], [rpm]");
}

// A generation is one prefix with one interpreter, to which bin/python and every script in bin/ belong.
[[noreturn]] void refuse_several_pythons(TomlTable& table) {
  std::string got;
  for (TomlTable& python : table.tables("python"))
    got += (got.empty() ? "[[python]] with version " : ", ") + python.string_or("version", "unknown");
  table.refuse("python", "a job has one Python", "one table [python]", got.empty() ? "an array" : got,
               "write a job file for each version, under a name of its own, and install each bundle into a prefix of "
               "its own");
}

std::vector<JobProgram> read_program(TomlTable& table, const fs::path& folder) {
  JobProgram program;
  table.attempt([&] {
    program.source = resolved(folder, table.string("source"));
    if (!fs::is_regular_file(program.source))
      table.refuse("source", "the program is not there", "a file", program.source.string(),
                   "build it, or correct the path; it is relative to the job file");
  });
  table.attempt([&] {
    program.into = table.string("into");
    try {
      bundle::SafePath::parse(program.into, "into");
    } catch (const Error& error) {
      table.refuse("into", error.facts().what, error.facts().expected, error.facts().got);
    }
  });
  table.attempt([&] { program.executable = table.boolean_or("executable", true); });
  table.done();
  return {std::move(program)};
}

// A file that several of our programs share is listed once.
void read_programs(TomlTable& document, const fs::path& folder, Job& job) {
  std::map<std::string, fs::path> places;
  document.each("program", [&](TomlTable& table) {
    std::vector<JobProgram> found = table.has("name") ? read_own_program(table, folder) : read_program(table, folder);
    for (JobProgram& program : found) {
      const auto [place, fresh] = places.emplace(program.into, program.source);
      if (!fresh && (place->second != program.source || !table.has("name")))
        table.refuse(table.has("name") ? "name" : "into", "two programs have the same path", "a path of its own",
                     program.into);
      if (fresh) job.programs.push_back(std::move(program));
    }
  });
}

// sdk = true, or [sdk] from = "DIR".
void read_sdk(TomlTable& job, const fs::path& folder, std::optional<JobSdk>& sdk) {
  if (job.is_boolean("sdk")) {
    if (job.boolean_or("sdk", false)) sdk.emplace();
    return;
  }
  TomlTable table = job.table("sdk");
  sdk.emplace();
  if (table.has("from")) sdk->from = resolved(folder, table.string("from"));
  table.done();
}

// [environment]: NAME = "VALUE", or NAME = false to have nothing set under a name.
void read_environment(TomlTable table, Job& job) {
  for (const std::string& name : table.keys())
    table.attempt([&] {
      table.ignore(name);
      const bool removed = table.is_boolean(name) && !table.boolean_or(name, true);
      const std::string value = removed ? "" : table.string(name);
      if (const char* fault = bundle::fault_of_carried_variable(name, value))
        table.refuse(name, fault, "like NLTK_DATA = \"${PREFIX}/data/nltk_data\"", value);
      job.variables.emplace(name, removed ? std::nullopt : std::optional(value));
    });
  table.done();
}

void read_version(TomlTable& table, Job& job) {
  table.attempt([&] { job.rollback_floor = table.integer_or("rollback_floor", 0); });
  table.attempt([&] {
    job.version = table.integer("version");
    if (job.version == 0) table.refuse("version", "versions start at 1 and only grow", "1 or more", "0");
  });
  table.attempt([&] {
    if (job.version != 0 && job.rollback_floor > job.version)
      table.refuse("rollback_floor", "the rollback floor is above the bundle's own version",
                   "at most " + std::to_string(job.version), std::to_string(job.rollback_floor));
  });
}

// Golden runs, none of which has the path of a program.
void read_goldens(TomlTable& table, const fs::path& folder, Job& job) {
  std::set<std::string> places;
  for (const JobProgram& program : job.programs) places.insert(program.into);
  job.goldens = read_job_goldens(table, folder);
  for (const JobGolden& golden : job.goldens) {
    if (!places.insert(golden.into()).second)
      table.refuse("golden", "a program has the path of a golden run", "a path of its own", golden.into());
    if (!golden.job) job.programs.push_back({.source = golden.file, .into = golden.into(), .executable = false});
  }
}

}  // namespace

Job read_job(const fs::path& file) {
  const TomlValue document = read_toml(file, ErrorCode::Usage);
  TomlTable table(document, file, ErrorCode::Usage);
  const fs::path folder = fs::absolute(file).parent_path();
  Job job{.file = file};  // each part is read, whatever is wrong with the others
  table.attempt([&] { job.name = table.plain_name("name"); });
  read_version(table, job);
  table.attempt([&] {
    if (table.has("channel")) job.channel = table.plain_name("channel");
  });
  table.attempt([&] { read_payload_digest(table, job); });
  table.attempt([&] { read_target(table.table("target"), folder, job); });
  table.attempt([&] {
    if (table.is_array("python")) refuse_several_pythons(table);
    if (table.has("python")) read_python(table.table("python"), folder, job);
  });
  table.attempt([&] { read_programs(table, folder, job); });
  table.attempt([&] { read_goldens(table, folder, job); });
  table.attempt([&] { job.models = read_job_models(table, folder); });
  table.attempt([&] { job.kernels = read_job_kernels(table); });
  table.attempt([&] { job.squashfs = read_squashfs(table); });
  table.attempt([&] { job.images = read_job_images(table, folder); });
  table.attempt([&] { job.owners = read_owner_rules(table); });
  table.attempt([&] { job.shared = read_shared_rules(table); });
  table.attempt([&] { job.startup_files = read_startup_rules(table); });
  table.attempt([&] { job.apt = read_job_apt(table); });
  table.attempt([&] { job.rpm = read_job_rpm(table, folder); });
  table.attempt([&] {
    job.toolchain = read_toolchain(table);
    for (const std::string& wheel : toolchain_requirements(job.toolchain, job.inputs.requirements))
      job.inputs.requirements.push_back(wheel);
  });
  table.attempt([&] {
    if (table.has("sdk")) read_sdk(table, folder, job.sdk);
  });
  table.attempt([&] {
    if (table.has("environment")) read_environment(table.table("environment"), job);
  });
  if (!table.has("python") && table.is_good()) table.attempt([&] { check_without_python(table, job); });
  table.done();
  return job;
}

}  // namespace sealift::packager
