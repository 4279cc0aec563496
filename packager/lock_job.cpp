// SPDX-License-Identifier: Apache-2.0
// The story of `lock`; see lock_job.hpp.
#include "packager/lock_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "packager/debian/lock_apt.hpp"
#include "packager/files/cache.hpp"
#include "packager/files/fetch.hpp"
#include "packager/files/remote_documents.hpp"
#include "packager/host/creation_time.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/scratch_folder.hpp"
#include "packager/job/owner_rules.hpp"
#include "packager/models/lock_model.hpp"
#include "packager/native/carried_runtime.hpp"
#include "packager/native/elf_on_disk.hpp"
#include "packager/native/native_report.hpp"
#include "packager/pack/pack_plan.hpp"
#include "packager/python/interpreter.hpp"
#include "packager/python/lock_python.hpp"
#include "packager/python/wheel_tags.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

void fill_sizes(std::vector<LockedWheel>& wheels) {
  std::vector<std::string> urls;
  for (const LockedWheel& wheel : wheels)
    if (wheel.size == 0) urls.push_back(wheel.url);
  const std::vector<std::uint64_t> sizes = remote_sizes(urls, 8);
  auto size = sizes.begin();
  for (LockedWheel& wheel : wheels)
    if (wheel.size == 0) wheel.size = *size++;
}

// Programs are part of the same closure as the interpreter: they find their libraries in the same lib/.
LockedProgram lock_program(const JobProgram& program, const std::string& into) {
  return {.source = program.source,
          .sha256 = digest_of_file(program.source),
          .size = fs::file_size(program.source),
          .into = into,
          .executable = program.executable};
}

// A program in bin/ that cannot be started as it is goes to libexec/, with the launcher in front of it.
std::vector<LockedProgram> lock_programs(const Job& job, const fs::path& launcher, NativeResolver& resolver) {
  std::vector<LockedProgram> programs;
  for (const JobProgram& program : job.programs) {
    const bool launched = program.into.starts_with("bin/") && wants_launcher(program.source, job.carries_runtime);
    programs.push_back(lock_program(program, launched ? "libexec/" + program.into.substr(4) : program.into));
    programs.back().from_wheels = resolver.add_program(program.source, program.into);
    if (launched) programs.push_back(lock_program({.source = launcher, .into = program.into}, program.into));
  }
  return programs;
}

// A program that cannot see the generation's lib/ would only start where the target has its libraries by chance.
void warn_of_search_path(const LockedProgram& program, const NativeClosure& closure, Console& console) {
  const std::optional<bundle::ElfFile> elf = read_elf_file(program.source);
  if (!elf) return;
  const auto carried = [&](const std::string& library) { return closure.libraries.contains(library); };
  if (std::none_of(elf->needed.begin(), elf->needed.end(), carried)) return;
  const std::string wanted =
      "$ORIGIN/" + fs::path("lib").lexically_relative(fs::path(program.into).parent_path()).string();
  if ((":" + elf->rpath + ":" + elf->runpath + ":").find(":" + wanted + ":") == std::string::npos)
    console.warn(fmt::format("{} needs carried libraries but does not look for them; build it with -Wl,-rpath,'{}'",
                             program.into, wanted));
}

void warn_of_runtime(const bundle::CarriedRuntime& runtime, const bundle::Target& machine, Console& console) {
  if (machine.glibc >= runtime.glibc)
    console.warn(
        fmt::format("the target's glibc {} is as new as this machine's {}, which is carried: without "
                    "runtime = \"carried\" the environment is smaller and easier to look after",
                    machine.glibc.text(), runtime.glibc.text()));
}

// Tags promise a glibc too; the ELF files inside wheels are not opened here.
std::vector<NativeNeed> with_wheels(std::vector<NativeNeed> needs, const Lock& lock, const bundle::Target& target) {
  for (const LockedWheel& wheel : lock.wheels)
    if (const std::optional<WheelFit> fit = fit_wheel(wheel.file_name, lock.python, target))
      needs.push_back({.who = wheel.file_name, .glibc = fit->glibc});
  return needs;
}

LockedInterpreter store_interpreter(const Tree& tree, const Interpreter& interpreter, const NativeClosure& closure,
                                    const Cache& cache, const fs::path& scratch) {
  const fs::path file = scratch / "interpreter.tar";
  const TreeTar tar = write_tree_tar(tree, file);
  cache.adopt(file, tar.sha256);
  LockedInterpreter locked{
      .description = interpreter.description(), .version = interpreter.version, .sha256 = tar.sha256, .size = tar.size};
  for (const auto& [name, path] : closure.libraries) locked.libraries.push_back(name);
  return locked;
}

// Replaced in one step: a reader sees the old text or the new one.
void replace_text(const fs::path& path, const std::string& text) {
  const fs::path partial = path.string() + ".partial";
  fs::remove(partial);
  bundle::write_text(partial, text);
  fs::rename(partial, path);
}

}  // namespace

LockResult lock_job(const LockOptions& options, Console& console) {
  Job job = read_job(options.job);
  const bundle::Target machine = job.target;
  const std::vector<fs::path> folders = NativeResolver::system_folders(machine.arch);
  std::optional<RuntimeFiles> runtime;
  if (job.carries_runtime) {  // from here on, things have to fit what they will be loaded with
    runtime = find_runtime(machine.arch, folders);
    warn_of_runtime(runtime->runtime, machine, console);
    job.target = loaded_with(machine, runtime->runtime);
  }
  const fs::path uv = find_uv(options.uv);
  const fs::path file =
      fs::absolute(options.out.empty() ? options.job.parent_path() / (job.name + ".lock.toml") : options.out)
          .lexically_normal();
  const Cache cache(options.cache.empty() ? Cache::default_root() : options.cache);
  const ScratchFolder scratch("lock", cache.root());
  Lock lock{.name = job.name,
            .version = job.version,
            .channel = job.channel,
            .rollback_floor = job.rollback_floor,
            .created = bundle::write_time(creation_time()),
            .payload_digest = job.payload_digest,
            .target = machine,
            .python = job.python,
            .imports = job.imports,
            .owners = job.owners};

  const Interpreter interpreter = find_interpreter(job, uv, scratch.path());
  console.note(fmt::format("interpreter: {} ({})", interpreter.description(), interpreter.executable.string()));
  LockedPython python = lock_python(job, uv, interpreter, file.parent_path(), cache, console);
  lock.wheels = std::move(python.wheels);
  std::set<std::string> packages;
  for (const LockedWheel& wheel : lock.wheels) packages.insert(bundle::normalized_project_name(wheel.name));
  require_packages(lock.owners, packages);
  std::vector<OfflineFinding> findings = offline_findings(lock.wheels);
  if (!findings.empty()) add_needs(findings, who_needs(job, uv, interpreter.executable));
  if (options.ask_sizes) fill_sizes(lock.wheels);

  NativeResolver resolver(job.target.arch, folders);
  const fs::path launcher = find_own_program(options.launcher, "sealift-start", "--launcher", job.target.arch);
  lock.programs = lock_programs(job, launcher, resolver);
  Tree tree = gather_interpreter(interpreter, launcher);
  carry_libraries(tree, interpreter, resolver, job.target.glibc, options.patchelf, scratch.path(), console);
  if (runtime) {
    carry_runtime(tree, *runtime);
    lock.runtime = runtime->runtime;
  } else {
    for (const LockedProgram& program : lock.programs) warn_of_search_path(program, resolver.closure(), console);
  }
  std::vector<NativeNeed> needs = with_wheels(resolver.closure().needs, lock, job.target);
  needs.insert(needs.end(), python.needs.begin(), python.needs.end());
  lock.glibc_floor = check_glibc_floor(needs, job.target.glibc);
  lock.interpreter = store_interpreter(tree, interpreter, resolver.closure(), cache, scratch.path());
  lock.models = lock_models(job.models, cache, console);
  lock.apt = lock_apt(job.apt, job.target.arch, cache, console);
  // What `create` would refuse is refused now, when the wheels are here already.
  if (std::all_of(lock.wheels.begin(), lock.wheels.end(),
                  [&](const LockedWheel& wheel) { return cache.contains(wheel.sha256); }))
    check_native(lock, cache, console, plan_pack(lock, cache, {}).left_out);

  fs::create_directories(file.parent_path());
  std::string evidence = job.name;  // the specification allows no dots here
  std::replace(evidence.begin(), evidence.end(), '.', '-');
  const fs::path pylock = file.parent_path() / ("pylock." + evidence + ".toml");
  if (job.inputs.lock_file != pylock) replace_text(pylock, python.pylock);  // never over what the job brought
  replace_text(file, write_lock(lock, file.parent_path()));
  return {.file = file, .lock = std::move(lock), .findings = std::move(findings)};
}

}  // namespace sealift::packager
