// SPDX-License-Identifier: Apache-2.0
// The story of `lock`; see lock_job.hpp.
#include "packager/lock_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bundle/host/scratch_folder.hpp"
#include "packager/debian/lock_apt.hpp"
#include "packager/files/cache.hpp"
#include "packager/files/replace_text.hpp"
#include "packager/files/sdk_tree.hpp"
#include "packager/host/creation_time.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/own_variables.hpp"
#include "packager/host/refusals.hpp"
#include "packager/host/uv.hpp"
#include "packager/images/lock_image.hpp"
#include "packager/interpreter/imports.hpp"
#include "packager/interpreter/interpreter.hpp"
#include "packager/interpreter/interpreter_libraries.hpp"
#include "packager/interpreter/interpreter_tree.hpp"
#include "packager/kernels/kernel_files.hpp"
#include "packager/kernels/kernel_questions.hpp"
#include "packager/kernels/lock_kernel.hpp"
#include "packager/libraries/carried_runtime.hpp"
#include "packager/libraries/locked_programs.hpp"
#include "packager/libraries/native_closure.hpp"
#include "packager/models/golden_runs.hpp"
#include "packager/models/lock_model.hpp"
#include "packager/network/fetch.hpp"
#include "packager/network/remote_documents.hpp"
#include "packager/pack/lock_check.hpp"
#include "packager/python/lock_python.hpp"
#include "packager/python/run_time_caches.hpp"
#include "packager/resolve/ignored_settings.hpp"
#include "packager/resolve/input_variables.hpp"
#include "packager/resolve/torch_backend.hpp"
#include "packager/resolve/wheel_tags.hpp"
#include "packager/rpm/lock_rpm.hpp"
#include "packager/tables/owner_rules.hpp"
#include "packager/tables/shared_rules.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

InterpreterChoice interpreter_of(const Job& job) {
  return {.version = job.python,
          .interpreter = job.interpreter,
          .sha256 = job.interpreter_sha256,
          .asked_in = job.file.string(),
          .arch = job.target.arch};
}

// The Python that uv and builds run: the carried one, or where that is for another kind of processor, this machine's of
// the same version. What it builds is refused unless it runs anywhere.
Interpreter runnable(const Interpreter& carried, const Job& job, const fs::path& uv, const fs::path& scratch) {
  if (job.target.arch == machine_arch()) return carried;
  return find_interpreter({.version = job.python, .asked_in = job.file.string() + " (for uv and builds)"}, uv, scratch);
}

void fill_sizes(std::vector<LockedWheel>& wheels, const HttpLogins& logins) {
  std::vector<std::string> urls;
  for (const LockedWheel& wheel : wheels)
    if (wheel.size == 0) urls.push_back(wheel.url);
  const std::vector<std::uint64_t> sizes = remote_sizes(urls, 8, logins);
  auto size = sizes.begin();
  for (LockedWheel& wheel : wheels)
    if (wheel.size == 0) wheel.size = *size++;
}

void warn_of_runtime(const bundle::CarriedRuntime& runtime, const bundle::Target& machine, bundle::Progress& progress) {
  if (machine.glibc >= runtime.glibc)
    progress.warn(
        fmt::format("the target's glibc {} is as new as this machine's {}, which is carried: without "
                    "runtime = \"carried\" the environment is smaller and easier to maintain",
                    machine.glibc.text(), runtime.glibc.text()));
}

// Wheel tags state a glibc too; the ELF files inside wheels are not opened here.
std::vector<NativeNeed> with_wheels(std::vector<NativeNeed> needs, const Lock& lock, const bundle::Target& target) {
  for (const LockedWheel& wheel : lock.wheels)
    if (const std::optional<WheelFit> fit = fit_wheel(wheel.file_name, lock.python, target))
      needs.push_back({.who = wheel.file_name, .glibc = fit->glibc});
  return needs;
}

// Before anything is resolved or built for it.
void refuse_newer_interpreter(const Interpreter& interpreter, const Job& job, NativeResolver resolver) {
  resolver.add(interpreter.executable, "bin/python" + interpreter.minor);
  check_glibc_floor(resolver.closure().needs, job.target.glibc);
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

LockedSdk store_sdk(const JobSdk& asked, const Cache& cache, const fs::path& scratch) {
  const SdkTree sdk = gather_sdk(asked.from);
  const fs::path file = scratch / "sdk.tar";
  const TreeTar tar = write_tree_tar(sdk.tree, file);
  cache.adopt(file, tar.sha256);
  return {.version = sdk.version, .sha256 = tar.sha256, .size = tar.size};
}

fs::path lock_file_of(const LockOptions& options, const Job& job) {
  const fs::path beside_job = options.job.parent_path() / (job.name + ".lock.toml");
  return fs::absolute(options.out.empty() ? beside_job : options.out).lexically_normal();
}

Lock unresolved(const Job& job) {
  return {.name = job.name,
          .version = job.version,
          .channel = job.channel,
          .rollback_floor = job.rollback_floor,
          .created = bundle::write_time(creation_time()),
          .payload_digest = job.payload_digest,
          .target = job.target,
          .overruled = job.overruled,
          .host_libraries = job.host_libraries,
          .system = job.system,
          .python = job.python,
          .imports = job.imports,
          .indexes = locked_indexes(job.inputs),
          .owners = job.owners,
          .shared = job.shared,
          .startup_files = job.startup_files,
          .toolchain = job.toolchain,
          .squashfs = job.squashfs};
}

// The job with the backend of torch that fits the target; uv is asked, and what it answers is thrown away.
void settle_torch(Job& job, PythonMeans& means, bundle::Progress& progress) {
  const bool chosen_here = job.inputs.torch_backend == "auto";
  job.inputs.torch_backend = choose_torch_backend(job, [&](const Job& candidate) -> std::string {
    try {
      SourceFacts nothing_known;
      ask_uv(candidate, means, nothing_known, progress);
      return {};
    } catch (const Error& error) {
      const auto causes = {ErrorCode::Missing, ErrorCode::Platform, ErrorCode::Conflict};  // of uv_refusal.hpp
      if (std::find(causes.begin(), causes.end(), error.code()) == causes.end()) throw;
      return error.facts().got;
    }
  });
  if (chosen_here) progress.note(fmt::format("torch: {}, for driver {}", job.inputs.torch_backend, job.target.driver));
}

// What decides which packages are taken, and who else could decide it.
void tell_of_indexes(const Job& job, const LockedIndexes& indexes, bundle::Progress& progress) {
  if (!indexes.default_index.empty()) progress.note("the index is " + indexes.default_index);
  for (const std::string& ignored : ignored_settings(job)) progress.warn(ignored);
  for (const std::string& warning : index_warnings(indexes)) progress.warn(warning);
}

// What the packages need offline, and what the job says, which wins.
bundle::Variables variables_of(const std::vector<OfflineFinding>& findings, const Lock& lock, const Job& job) {
  bundle::Variables variables;
  for (const std::string& setting : offline_settings(findings)) {
    const std::size_t equals = setting.find('=');
    variables.emplace(setting.substr(0, equals), setting.substr(equals + 1));
  }
  variables.merge(toolchain_variables(job.toolchain));
  variables.merge(kernel_variables(lock.kernels));
  variables.merge(cache_variables(lock.wheels, lock.python));
  for (const auto& [name, value] : job.variables) {
    variables.erase(name);
    if (value) variables.emplace(name, *value);
  }
  return variables;
}

std::set<std::string> projects_of(const std::vector<LockedWheel>& wheels) {
  std::set<std::string> projects;
  for (const LockedWheel& wheel : wheels) projects.insert(bundle::normalized_project_name(wheel.name));
  return projects;
}

// The lock with those wheels that need no build, for what can be judged before one.
Lock with_published(Lock lock, const PythonChoice& choice, const HttpLogins& logins) {
  lock.wheels = choice.wheels;
  fill_sizes(lock.wheels, logins);
  std::set<std::string> projects = projects_of(lock.wheels);
  for (const SourcePackage& source : choice.sources) projects.insert(source.name);
  require_packages(lock.owners, projects);
  require_packages(lock.shared, projects);
  return lock;
}

// uv's own lock file, beside ours; as soon as there is one, because it shows what was chosen when something of that is
// refused.
void write_evidence(const fs::path& folder, const Job& job, const std::string& pylock) {
  std::string name = job.name;  // the specification allows no dots here
  std::replace(name.begin(), name.end(), '.', '-');
  const fs::path file = folder / ("pylock." + name + ".toml");
  if (job.inputs.lock_file != file) replace_text(file, pylock);  // never over a file of the job
}

// What a job with [python] has: the interpreter that is carried, what asks for its packages, and where.
struct PythonSide {
  Interpreter interpreter;
  PythonMeans means;
  LockedIndexes indexes;
};

PythonSide python_side(const LockOptions& options, Job& job, const fs::path& folder,
                       const std::vector<fs::path>& system_folders, const Cache& cache, const fs::path& scratch,
                       bundle::Progress& progress) {
  const fs::path uv = find_uv(options.uv);
  const Interpreter interpreter = find_interpreter(interpreter_of(job), uv, scratch);
  progress.note(fmt::format("interpreter: {} ({})", interpreter.description(), interpreter.executable.string()));
  refuse_newer_interpreter(interpreter, job, {job.target.arch, system_folders, job.host_libraries});
  const Interpreter builder = runnable(interpreter, job, uv, scratch);
  PythonMeans means = python_means(job, uv, interpreter.version, builder, folder, cache, options.isolation, scratch);
  means.tools.index_logins = index_logins(with_inputs(locked_indexes(job.inputs), job));
  settle_torch(job, means, progress);
  LockedIndexes indexes = with_inputs(locked_indexes(job.inputs), job);
  means.tools.index_logins = index_logins(indexes);
  tell_of_indexes(job, indexes, progress);
  for (const std::string& name : unset_input_variables(job))
    progress.warn("the requirements name ${" + name +
                  "}, and uv gets no such variable: it stays as it stands there (set it)");
  for (const std::string& name : job.inputs.excludes)
    progress.warn(name + " is left out because the job excludes it: what asks for it may fail when it uses it");
  return {.interpreter = interpreter, .means = std::move(means), .indexes = std::move(indexes)};
}

LockedPython lock_packages(PythonSide& side, const Lock& lock, const Job& job, const HttpLogins& logins,
                           SeenAhead& ahead, bundle::Progress& progress) {
  PythonLock packages(job, side.means, progress);
  do {
    packages.ask();
    write_evidence(side.means.folder, job, packages.pylock());
    if (!packages.choice().sources.empty())
      check_published(with_published(lock, packages.choice(), logins), side.means.cache, logins, ahead);
  } while (!packages.build());
  return packages.finish();
}

}  // namespace

LockResult lock_job(const LockOptions& options, bundle::Progress& progress) {
  // What is asked for, and the tools to resolve it.
  Job job = read_job(options.job);
  Lock lock = unresolved(job);
  for (const std::string& floor : job.fleet_floors) progress.note("fleet: " + floor);
  const fs::path file = lock_file_of(options, job), folder = file.parent_path();
  const Cache cache(options.cache.empty() ? Cache::default_root() : options.cache, job.payload_digest);
  for (const std::string& variable : foreign_variables()) progress.warn(variable + kNotGoneBy);
  const bundle::ScratchFolder scratch("lock", cache.scratch());
  const std::vector<fs::path> system_folders = NativeResolver::folders_of(job.system, job.target.arch);
  std::optional<RuntimeFiles> runtime;
  if (job.carries_runtime) {  // from here on, files have to fit the glibc that they will be loaded with
    runtime = find_runtime(job.target.arch, system_folders);
    warn_of_runtime(runtime->runtime, job.target, progress);
    job.target = loaded_with(job.target, runtime->runtime);
    lock.runtime = runtime->runtime;
  }

  // Python and its packages, and what else can be refused before the long work.
  std::optional<PythonSide> side;
  if (!job.python.empty()) side = python_side(options, job, folder, system_folders, cache, scratch.path(), progress);
  const HttpLogins logins = side ? index_logins(lock.indexes = side->indexes) : HttpLogins();
  Refusals refusals;  // what the one part refuses is no reason to ask the others in another run
  LockedPython python;
  SeenAhead ahead;
  if (side) refusals.ask([&] { python = lock_packages(*side, lock, job, logins, ahead, progress); });
  refusals.ask([&] { lock.models = list_models(job.models, cache, progress); });
  refusals.ask([&] { lock.apt = lock_apt(job.apt, job.target.arch, cache, progress); });
  refusals.ask([&] { lock.rpm = lock_rpm(job.rpm, job.target.arch, cache, progress); });
  refusals.ask([&] { lock.images = lock_images(job.images, job.target.arch, cache, progress); });
  refusals.refuse("parts of the job are refused", "do for each of them what stands below it, and lock again");
  lock.wheels = std::move(python.wheels);
  lock.warnings = std::move(python.warnings);
  lock.indexes.signed_pages = std::move(python.signed_pages);
  require_packages(lock.owners, projects_of(lock.wheels));
  require_packages(lock.shared, projects_of(lock.wheels));
  std::vector<OfflineFinding> findings = offline_findings(lock.wheels);
  lock.kernels = lock_kernels(job.kernels, lock.wheels, job.target.arch, cache, progress);
  lock.variables = variables_of(findings, lock, job);
  for (const std::string& warning : kernel_questions(lock.wheels, lock.kernels)) progress.warn(warning);
  if (!findings.empty()) add_needs(findings, who_needs(job, side->means.tools.uv, side->means.uv_python, python.facts));
  fill_sizes(lock.wheels, logins);
  lock.glibc_floor = check_glibc_floor({}, job.target.glibc);

  // The interpreter's tree, programs, and the libraries that they share.
  if (side) {
    const Interpreter& interpreter = side->interpreter;
    const fs::path launcher = find_own_program(options.launcher, "sealift-start", "--launcher", job.target.arch);
    NativeResolver resolver(job.target.arch, system_folders, job.host_libraries);
    lock.programs = lock_programs(job, launcher, resolver);
    Tree tree = gather_interpreter(interpreter, launcher);
    require_imports(lock.imports, own_modules(interpreter, tree, lock.programs), lock.wheels, cache, logins, job.file,
                    progress);
    carry_libraries(tree, interpreter, resolver, job.target.glibc, options.patchelf, scratch.path(), progress);
    if (runtime)
      carry_runtime(tree, *runtime);
    else
      for (const LockedProgram& program : lock.programs) warn_of_search_path(program, resolver.closure(), progress);
    std::vector<NativeNeed> needs = with_wheels(resolver.closure().needs, lock, job.target);
    needs.insert(needs.end(), python.needs.begin(), python.needs.end());
    lock.glibc_floor = check_glibc_floor(needs, job.target.glibc);
    lock.interpreter = store_interpreter(tree, interpreter, resolver.closure(), cache, scratch.path());
  }

  // Everything else, and whether it fits together.
  if (job.sdk) lock.sdk = store_sdk(*job.sdk, cache, scratch.path());
  hash_models(lock.models, cache, progress);
  for (const JobProgram& result :
       run_goldens(job, lock.models, cache, folder, scratch.path(), options.isolation, progress))
    lock.programs.push_back(lock_program(result, result.into));
  require_inputs_of_goldens(job.goldens, lock);
  check_profile(lock, progress);
  const std::string text = write_lock(lock, folder);
  ToldWarnings told(cache, bundle::sha256(bundle::as_bytes(text)));
  told.begin_anew();
  check_contents(lock, cache, logins, ahead, told, progress);

  replace_text(file, text);
  told.close(progress);
  cache.warn_of_notes(progress);
  return {.file = file, .lock = std::move(lock), .findings = std::move(findings)};
}

}  // namespace sealift::packager
