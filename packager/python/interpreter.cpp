// SPDX-License-Identifier: Apache-2.0
// Finds an interpreter and gathers its files; see interpreter.hpp.
#include "packager/python/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bundle/core/json.hpp"
#include "packager/files/cache.hpp"
#include "packager/host/own_program.hpp"
#include "packager/host/uv.hpp"
#include "packager/native/elf_on_disk.hpp"
#include "packager/python/foreign_interpreter.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

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
    'virtual': sys.prefix != sys.base_prefix, 'prefix': sys.base_prefix,
    'stdlib': paths['stdlib'], 'platstdlib': paths['platstdlib'], 'headers': paths['include'],
    'pyconfig': os.path.join(sys.base_prefix, 'include', multiarch, 'python' + minor, 'pyconfig.h') if multiarch else '',
    'wheels': sysconfig.get_config_var('WHEEL_PKG_DIR') or '', 'builtin': sys.builtin_module_names, 'sites': site.getsitepackages()}))
)";

// A distribution's interpreter only searches dist-packages; this adds the folder that the installer fills.
constexpr const char* kSiteCustomize = R"(# Makes the packages of this prefix visible; written by sealift-pack.
import os
import site
import sys

if sys.prefix == sys.base_prefix:
    _folder = os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    if _folder not in sys.path:
        site.addsitedir(_folder)
)";

// PEP 668: pip and uv leave alone what was signed. pip prints the text.
constexpr const char* kExternallyManaged = R"([externally-managed]
Error=This Python is a generation that sealift-install made from a signed bundle. Packages that
 are installed into it would change what was signed: doctor would find it, and the next switch would
 leave them behind. For packages of your own, make a virtual environment on top of it:

     sealift-install venv DIR --prefix PREFIX
     . DIR/bin/activate

 It sees all packages of this generation, and pip and uv install into it. Packages that all should
 have belong into the next bundle.
)";

// Python takes the folder lib-dynload for the mark of its own exec_prefix. Without it the one that it was built for
// counts, often /usr, whose site folders, and the .pth files there, are then the host's.
constexpr const char* kLibDynload =
    "Python finds its own exec_prefix by this folder; this file keeps it where there is no module in it.\n";

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
    throw Error(ErrorCode::Digest, {.what = "the interpreter's archive is not the one that the job pins",
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

Interpreter ask(const fs::path& executable, bool again = false) {
  const std::string answer = run_checked({executable.string(), "-I", "-c", kQuestion});
  const bundle::Json json = bundle::parse_json(answer, executable.string());
  bundle::JsonObject object(json, executable.string());
  // A virtual environment is not a Python of its own, so the one behind it is taken.
  if (object.boolean("virtual") && !again) return ask(object.string("executable"), true);
  Interpreter found{.executable = object.string("executable"),
                    .version = object.string("version"),
                    .minor = object.string("minor"),
                    .prefix = object.string("prefix"),
                    .stdlib = object.string("stdlib")};
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

bool left_out_folder(const std::string& name) {
  static constexpr std::string_view kNames[] = {"__pycache__", "test",          "tests",
                                                "idle_test",   "site-packages", "dist-packages"};
  return name.starts_with("config-") || std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Tests, static libraries, site settings of this machine, and modules that need more than their libraries (Tk needs
// Tcl's scripts; NIS would pull in Kerberos).
bool left_out_file(const std::string& name) {
  static constexpr std::string_view kNames[] = {"sitecustomize.py", "usercustomize.py", "EXTERNALLY-MANAGED"};
  static constexpr std::string_view kModules[] = {
      "_test", "_ctypes_test.", "_xxtestfuzz.", "_xxsubinterpreters_test", "xxlimited", "_tkinter.", "nis."};
  if (name.ends_with(".pyc") || name.ends_with(".a")) return true;
  if (name.ends_with(".so"))
    return std::any_of(std::begin(kModules), std::end(kModules), [&](auto module) { return name.starts_with(module); });
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_executable(const fs::path& file) {
  return (fs::status(file).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

using Links = std::vector<std::pair<std::string, fs::path>>;  // place in the tree, the link itself

void gather_folder(const fs::path& folder, const std::string& place, Tree& tree, Links& links) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const fs::file_type type = entry.symlink_status().type();
    const std::string inner = place + "/" + name;
    if (type == fs::file_type::directory) {
      if (!left_out_folder(name)) gather_folder(entry.path(), inner, tree, links);
    } else if (left_out_file(name)) {
      continue;
    } else if (type == fs::file_type::symlink) {
      links.emplace_back(inner, entry.path());
    } else if (type == fs::file_type::regular) {
      tree[inner] = {.source = entry.path(), .executable = is_executable(entry.path())};
    }
  }
}

// Links between files of the tree stay links; others are replaced by the file behind them, or dropped without one.
void settle_links(const Links& links, Tree& tree) {
  for (const auto& [place, link] : links) {
    const std::string target = fs::read_symlink(link).string();
    const std::string meant = (fs::path(place).parent_path() / target).lexically_normal().string();
    std::error_code error;
    if (bundle::link_stays_inside(bundle::SafePath::parse(place, link.string()), target) && tree.contains(meant))
      tree[place] = {.text = target, .link = true};
    else if (fs::is_regular_file(link, error))
      tree[place] = {.source = fs::canonical(link), .executable = is_executable(link)};
  }
}

}  // namespace

namespace {

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

namespace {

// A distribution's ensurepip takes its wheels from a folder of the system; the carried one from beside itself, so that
// `python -m venv` works where there is no such folder.
void carry_ensurepip(const Interpreter& interpreter, const std::string& stdlib, Tree& tree) {
  static const std::string kFolder = "sysconfig.get_config_var('WHEEL_PKG_DIR')";
  const auto found = tree.find(stdlib + "/ensurepip/__init__.py");
  if (interpreter.wheels.empty() || found == tree.end() || !fs::is_directory(interpreter.wheels)) return;
  std::string text = bundle::read_text(found->second.source, std::uint64_t{1} << 20);
  const std::size_t at = text.find(kFolder);
  if (at == text.npos) return;
  text.replace(at, kFolder.size(), "os.path.join(os.path.dirname(os.path.abspath(__file__)), '_bundled')");
  found->second = {.text = std::move(text)};
  for (const fs::directory_entry& file : fs::directory_iterator(interpreter.wheels)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(".whl") && (name.starts_with("pip-") || name.starts_with("setuptools-")))
      tree[stdlib + "/ensurepip/_bundled/" + name] = {.source = fs::canonical(file.path())};
  }
}

}  // namespace

Tree gather_interpreter(const Interpreter& interpreter, const fs::path& launcher) {
  const std::string name = "python" + interpreter.minor;
  Tree tree;
  Links links;
  const std::string stdlib = interpreter.stdlib.lexically_relative(interpreter.prefix).string();
  gather_folder(interpreter.stdlib, stdlib, tree, links);
  if (!interpreter.headers.empty()) gather_folder(interpreter.headers, "include/" + name, tree, links);
  settle_links(links, tree);
  carry_ensurepip(interpreter, stdlib, tree);
  if (!interpreter.headers.empty() && !interpreter.pyconfig.empty())
    tree["include/" + name + "/pyconfig.h"] = {.source = interpreter.pyconfig};
  tree["libexec/" + name] = {.source = interpreter.executable, .executable = true};
  tree["bin/" + name] = {.source = launcher, .executable = true};
  tree["bin/python3"] = {.text = name, .link = true};
  tree["bin/python"] = {.text = name, .link = true};
  tree[stdlib + "/lib-dynload/README"] = {.text = kLibDynload};
  tree[stdlib + "/EXTERNALLY-MANAGED"] = {.text = kExternallyManaged};
  if (!interpreter.finds_site_packages) tree[stdlib + "/sitecustomize.py"] = {.text = kSiteCustomize};
  return tree;
}

namespace {

// A copy with the search path `rpath`: as DT_RPATH, so that it also applies to what is loaded later; empty removes it.
fs::path with_rpath(const fs::path& patchelf, const fs::path& file, const fs::path& copy, const std::string& rpath) {
  fs::create_directories(copy.parent_path());
  fs::copy_file(fs::canonical(file), copy);
  fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add);
  if (rpath.empty())
    run_checked({patchelf.string(), "--remove-rpath", copy.string()});
  else
    run_checked({patchelf.string(), "--force-rpath", "--set-rpath", rpath, copy.string()});
  return copy;
}

bool has_search_path(const fs::path& file) {
  bundle::FileSource source(fs::canonical(file));
  const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
  return elf && !(elf->rpath.empty() && elf->runpath.empty());
}

fs::path find_patchelf(const fs::path& given) {
  const fs::path patchelf = given.empty() ? find_program("patchelf") : given;
  if (patchelf.empty() || !fs::exists(patchelf))
    throw Error(ErrorCode::Missing, {.what = "patchelf, which makes the interpreter find its libraries, is not there",
                                     .where = patchelf.empty() ? "PATH" : patchelf.string(),
                                     .next = "install it (Debian: apt install patchelf), or name it with --patchelf"});
  return patchelf;
}

}  // namespace

void carry_libraries(Tree& tree, const Interpreter& interpreter, NativeResolver& resolver, bundle::GlibcVersion target,
                     const fs::path& given, const fs::path& scratch, bundle::Progress& progress) {
  const std::string executable = "bin/python" + interpreter.minor;
  if (const std::vector<std::string> missing = resolver.add(interpreter.executable, executable); !missing.empty())
    throw Error(ErrorCode::Missing, {.what = "a library of the interpreter is not on this machine",
                                     .where = interpreter.executable.string(),
                                     .got = missing.front(),
                                     .next = "install it, or use another interpreter"});
  // PyTorch's wheels rely on these, and a minimal target has none of them.
  for (const char* library : {"libstdc++.so.6", "libgcc_s.so.1", "libz.so.1"})
    if (!resolver.offer_library(library, target))
      progress.warn(
          fmt::format("{} is not carried: there is none here that needs no glibc newer than {}; the target "
                      "must have its own",
                      library, target.text()));
  std::vector<std::string> incomplete;
  for (const auto& [place, item] : tree) {
    if (item.link || item.source.empty() || !place.ends_with(".so")) continue;
    const std::vector<std::string> missing = resolver.add(item.source, place);
    if (missing.empty()) continue;
    progress.warn(fmt::format("{} is left out: {} is not on this machine", place, missing.front()));
    incomplete.push_back(place);
  }
  for (const std::string& place : incomplete) tree.erase(place);
  for (const auto& [name, file] : resolver.closure().libraries)
    tree["lib/" + fs::path(name).filename().string()] = {.source = file};
  const fs::path patchelf = find_patchelf(given);
  TreeItem& program = tree["libexec/python" + interpreter.minor];
  program.source = with_rpath(patchelf, program.source, scratch / "patched/python", "$ORIGIN/../lib");
  // An interpreter with a prefix of its own may have been built with search paths that only exist on this machine, and
  // a DT_RUNPATH among them would disable the executable's. A distribution's files are left as they are.
  if (interpreter.prefix == "/usr") return;
  for (auto& [place, item] : tree) {
    const bool own = !item.link && !item.source.lexically_relative(interpreter.prefix).string().starts_with("..");
    if (own && !item.source.empty() && place.find(".so") != place.npos && has_search_path(item.source))
      item.source = with_rpath(patchelf, item.source, scratch / "patched" / place, "");
  }
}

}  // namespace sealift::packager
