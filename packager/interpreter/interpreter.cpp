// SPDX-License-Identifier: Apache-2.0
// Finds an interpreter and asks it; see interpreter.hpp.
#include "packager/interpreter/interpreter.hpp"

#include <algorithm>
#include <optional>

#include "bundle/core/json.hpp"
#include "packager/files/cache.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/uv.hpp"
#include "packager/interpreter/foreign_interpreter.hpp"
#include "packager/libraries/elf_on_disk.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr const char* kQuestion = R"(
import json, os, site, sys, sysconfig
paths, multiarch = sysconfig.get_paths(), sysconfig.get_config_var('MULTIARCH') or ''
minor = '%d.%d' % sys.version_info[:2]
print(json.dumps({
    'executable': os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable),
    'implementation': sys.implementation.name, 'version': '%d.%d.%d' % sys.version_info[:3], 'minor': minor,
    'threaded': bool(sysconfig.get_config_var('Py_GIL_DISABLED')), 'virtual': sys.prefix != sys.base_prefix, 'prefix': sys.base_prefix,
    'stdlib': paths['stdlib'], 'platstdlib': paths['platstdlib'], 'headers': paths['include'],
    'pyconfig': os.path.join(sys.base_prefix, 'include', multiarch, 'python' + minor, 'pyconfig.h') if multiarch else '',
    'wheels': sysconfig.get_config_var('WHEEL_PKG_DIR') or '', 'builtin': sys.builtin_module_names, 'sites': site.getsitepackages()}))
)";

bool is_archive(const std::string& name) {
  static constexpr std::string_view kSuffixes[] = {".tar", ".tar.zst", ".tar.gz", ".tgz", ".tar.xz"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [&](auto suffix) { return name.ends_with(suffix); });
}

std::string where(const InterpreterChoice& choice) {
  return choice.asked_in.empty() ? "" : choice.asked_in + ", [python]";
}

void unpack(const InterpreterChoice& choice, const fs::path& into) {
  const fs::path archive = choice.interpreter;
  if (!choice.sha256)
    throw Error(ErrorCode::Usage, {.what = "an interpreter's archive must be pinned",
                                   .where = where(choice),
                                   .expected = "interpreter_sha256 beside interpreter",
                                   .next = "take the digest from where the archive was published"});
  if (const bundle::Digest digest = digest_of_file(archive); digest != *choice.sha256)
    throw Error(ErrorCode::Digest, {.what = "the interpreter's archive has another digest than the job pins",
                                    .where = archive.string(),
                                    .expected = "sha256 " + choice.sha256->hex(),
                                    .got = "sha256 " + digest.hex()});
  run_checked({"tar", "--no-same-owner", "-xf", archive.string(), "-C", into.string()});
}

fs::path executable_in(const fs::path& folder, const std::string& minor) {
  for (const fs::path& root : {folder, folder / "python", folder / "python" / "install"})
    for (const std::string& name : {"python" + minor, std::string("python3")})
      if (fs::exists(root / "bin" / name)) return root / "bin" / name;
  throw Error(ErrorCode::Missing, {.what = "there is no interpreter in this folder",
                                   .where = folder.string(),
                                   .expected = "bin/python" + minor,
                                   .next = "name the folder that holds bin and lib"});
}

fs::path locate(const InterpreterChoice& choice, const fs::path& uv, const fs::path& scratch) {
  if (choice.interpreter == "auto" && !choice.arch.empty() && choice.arch != machine_arch())
    return find_foreign(choice.version, choice.arch, uv, where(choice));
  if (choice.interpreter == "auto") {
    const ProcessResult found = run_uv({uv.string(), "python", "find", "--system", choice.version});
    if (found.exit_code == 0) return found.out.substr(0, found.out.find('\n'));
    throw Error(ErrorCode::Missing, {.what = "uv finds no Python " + choice.version + " on this machine",
                                     .where = where(choice),
                                     .got = found.err,
                                     .next = "install it, or name one with [python].interpreter: an executable, the "
                                             "folder that holds bin and lib (pyenv's is ~/.pyenv/versions/VERSION), or "
                                             "a .tar/.tar.gz/.tar.zst with interpreter_sha256"});
  }
  const fs::path given = choice.interpreter;
  if (fs::is_directory(given)) return executable_in(given, choice.version);
  if (!fs::is_regular_file(given))
    throw Error(ErrorCode::Missing, {.what = "the interpreter is not there",
                                     .where = given.string(),
                                     .expected = "an executable, a folder that holds bin and lib, or an archive "
                                                 "(.tar, .tar.gz, .tar.zst) of one"});
  if (!is_archive(given.string())) return given;
  const fs::path folder = scratch / "interpreter";
  fs::create_directory(folder);
  unpack(choice, folder);
  return executable_in(folder, choice.version);
}

std::string answer_of(const fs::path& executable) {
  const ProcessResult result = run_process({executable.string(), "-I", "-c", kQuestion});
  if (result.exit_code == 0) return result.out;
  const bool newer = result.err.find("version `GLIBC_") != std::string::npos;
  throw Error(
      ErrorCode::Platform,
      {.what =
           newer ? "this interpreter is for a newer system than this machine" : "this interpreter does not start here",
       .where = executable.string(),
       .expected = "one that runs, since uv and builds ask it",
       .got = "exit code " + std::to_string(result.exit_code) + ": " + result.err.substr(0, 2000),
       .next = newer ? "run sealift-pack on a system of its kind (a container will do), or name one that runs here"
                     : "name another one in [python] interpreter"});
}

Interpreter ask(const fs::path& executable, bool again = false) {
  const std::string answer = answer_of(executable);
  const bundle::Json json = bundle::parse_json(answer, executable.string());
  bundle::JsonObject object(json, executable.string());
  // A virtual environment is not a Python of its own, so the one behind it is taken.
  if (object.boolean("virtual") && !again) return ask(object.string("executable"), true);
  Interpreter found{.executable = object.string("executable"),
                    .version = object.string("version"),
                    .minor = object.string("minor"),
                    .prefix = object.string("prefix"),
                    .stdlib = object.string("stdlib")};
  if (object.boolean("threaded"))
    throw Error(
        ErrorCode::Platform,
        {.what = "a free-threaded interpreter cannot be carried: its packages are those of another ABI",
         .where = executable.string(),
         .expected = "CPython " + found.minor + " with its lock",
         .got = "CPython " + found.minor + "t",
         .next = "leave [python] interpreter out, and one with its lock is looked for; or name one, such as what "
                 "`uv python find " +
                 found.minor + "+gil` prints"});
  if (object.string("implementation") != "cpython" || object.string("platstdlib") != found.stdlib)
    throw Error(ErrorCode::Platform, {.what = "this interpreter cannot be carried",
                                      .where = executable.string(),
                                      .expected = "CPython with one folder for its standard library",
                                      .got = object.string("implementation") + ", " + found.stdlib.string() + " and " +
                                             object.string("platstdlib"),
                                      .next = "use another one"});
  if (const fs::path headers = object.string("headers"); fs::exists(headers / "Python.h")) found.headers = headers;
  if (const fs::path pyconfig = object.string("pyconfig"); fs::is_regular_file(pyconfig)) found.pyconfig = pyconfig;
  found.wheels = object.string("wheels");
  for (const bundle::Json& module : object.array("builtin", 1000))
    if (module.is_string()) found.builtin_modules.push_back(module.get<std::string>());
  const bundle::Json& sites = object.array("sites", 100);
  found.finds_site_packages = std::any_of(sites.begin(), sites.end(), [&](const bundle::Json& site) {
    return site == (found.prefix / found.site_packages()).string();
  });
  return found;
}

// A script that stands in for one can only be asked.
std::string arch_of(const fs::path& executable) {
  const std::optional<bundle::ElfFile> elf = read_elf_file(executable);
  return elf ? elf->arch : machine_arch();
}

}  // namespace

Interpreter find_interpreter(const InterpreterChoice& choice, const fs::path& uv, const fs::path& scratch) {
  const fs::path executable = locate(choice, uv, scratch);
  const std::string wanted = choice.arch.empty() ? machine_arch() : choice.arch, arch = arch_of(executable);
  if (arch != wanted)
    throw Error(ErrorCode::Platform, {.what = "the interpreter is for another architecture",
                                      .where = executable.string(),
                                      .expected = wanted,
                                      .got = arch,
                                      .next = "name one for the target with [python].interpreter"});
  Interpreter interpreter = arch == machine_arch() ? ask(executable) : read_foreign(executable, choice.version, arch);
  if (interpreter.minor != choice.version)
    throw Error(ErrorCode::Platform, {.what = "the interpreter is of another version",
                                      .where = interpreter.executable.string(),
                                      .expected = choice.version,
                                      .got = interpreter.version,
                                      .next = "correct [python].version or [python].interpreter"});
  return interpreter;
}

}  // namespace sealift::packager
