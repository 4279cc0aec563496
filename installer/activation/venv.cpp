// SPDX-License-Identifier: Apache-2.0
// What makes a folder a virtual environment is pyvenv.cfg, so that is written last, and a link to the interpreter, of
// the generation and not of `current`. Sources: CPython, Lib/venv/__init__.py, Lib/site.py; PEP 405; PEP 668.
#include "installer/activation/venv.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "bundle/host/require_trusted.hpp"
#include "installer/activation/shell_text.hpp"
#include "installer/activation/site_settings.hpp"
#include "installer/activation/variables.hpp"
#include "installer/activation/venvs.hpp"
#include "installer/disk/anchored.hpp"
#include "installer/generations/generation.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/store/store.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::string_view kMark = "\nsealift-prefix = ";  // in pyvenv.cfg, of the folders that are ours
constexpr std::uint64_t kMaxFile = 1 << 20;

constexpr std::string_view kActivate = R"sh(# For sh, bash, zsh, ksh: . @FOLDER@/bin/activate; the way back: deactivate
if [ ! -x @GENERATION@/bin/python3 ]; then
  echo @GONE@ >&2
  return 1
fi
if [ -n "${_SEALIFT_VENV_PATH:-}" ]; then deactivate; fi
_SEALIFT_VENV_PATH=$PATH
_SEALIFT_VENV_PYTHONPATH=${PYTHONPATH:-}
deactivate() {
  PATH=$_SEALIFT_VENV_PATH
  if [ -n "$_SEALIFT_VENV_PYTHONPATH" ]; then PYTHONPATH=$_SEALIFT_VENV_PYTHONPATH; export PYTHONPATH; fi
  eval "unset _sealift_none ${_SEALIFT_SET:-}"
  unset VIRTUAL_ENV SEALIFT_PREFIX PYTHONNOUSERSITE _SEALIFT_VENV_PATH _SEALIFT_VENV_PYTHONPATH _SEALIFT_SET
  unset -f deactivate
  hash -r 2>/dev/null || true
}
unset PYTHONPATH PYTHONHOME
VIRTUAL_ENV=@FOLDER@
SEALIFT_PREFIX=@PREFIX@
PYTHONNOUSERSITE=1
PATH=$VIRTUAL_ENV/bin:@GENERATION@/bin:$PATH
export VIRTUAL_ENV SEALIFT_PREFIX PYTHONNOUSERSITE PATH
@VARIABLES@hash -r 2>/dev/null || true
)sh";

[[noreturn]] void refuse(ErrorCode code, const char* what, const fs::path& where, std::string next) {
  throw Error(code, {.what = what, .where = bundle::SafePath::printable(where.string()), .next = std::move(next)});
}

// Absolute, with the links of the folder above it resolved, so that one place has one name.
fs::path place_of(const VenvOptions& options) {
  const fs::path folder = Prefix(options.folder).folder();  // absolute, normal
  std::error_code error;
  const fs::path above = fs::canonical(folder.parent_path(), error);
  if (error) refuse(ErrorCode::Missing, "its parent folder does not exist", folder.parent_path(), "make it");
  const fs::path place = above / folder.filename();
  const std::string text = place.string();
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f || c == ':'; }))
    refuse(ErrorCode::Usage, "a virtual environment cannot have this name", place, "no colons or control characters");
  const std::string inside = fs::weakly_canonical(options.prefix.folder()).string() + "/";
  if ((text + "/").starts_with(inside))
    refuse(ErrorCode::Usage, "a prefix holds what was signed only", place, "choose a folder outside of it");
  return place;
}

void check_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored))) return;
  if (fs::is_directory(fs::symlink_status(folder, ignored))) {
    if (fs::is_empty(folder, ignored)) return;
    const fs::path settings = folder / "pyvenv.cfg";
    if (fs::is_regular_file(settings, ignored) &&
        bundle::read_text(settings, kMaxFile).find(kMark) != std::string::npos)
      return;
  }
  refuse(ErrorCode::Conflict, "something else is there, which is left as it is", folder,
         "name a new folder, or remove this one");
}

void require_own(const fs::path& path) {
  bundle::require_trusted_path(path, bundle::Above::Site,
                               "another user may change what runs in this virtual environment");
}

// What is there before this writes: what Python imports from it, and what decides where.
void check_parts(const fs::path& folder, const fs::path& site_packages) {
  require_own(folder);
  for (fs::path part = site_packages; part.has_relative_path(); part = part.parent_path()) require_own(folder / part);
  for (const char* part : {"bin", "pyvenv.cfg", "pip.conf"}) require_own(folder / part);
}

bool owns(const Prefix& prefix) {
  struct stat status {};
  return ::stat(prefix.generations().c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

// Before the folder is made: a gc at the same time sees it, or has not begun, or has taken the generation already.
void tell_gc(const Prefix& prefix, unsigned number, const fs::path& folder, Disk& disk) {
  const PrefixLock lock(prefix, disk, "venv");
  require_generation(prefix, number);
  sweep(prefix, disk);
  disk.make_folder(prefix.staging());
  remember_venv(prefix, number, folder, disk);
  sweep(prefix, disk);
}

class VenvWriter {
 public:
  VenvWriter(fs::path folder, Disk& disk) : folder_(std::move(folder)), disk_(disk) {}

  void make_folders(const std::string& path) { disk_.make_folders(folder_ / path); }
  void write(const std::string& path, const std::string& text, mode_t mode = 0644) {
    disk_.remove_tree(fresh(path));
    disk_.write_new(fresh(path), text, mode);
    disk_.rename(fresh(path), folder_ / path);
  }
  void link(const std::string& path, const std::string& target) {
    disk_.remove_tree(fresh(path));
    disk_.make_symlink(target, fresh(path));
    disk_.rename(fresh(path), folder_ / path);
  }

 private:
  fs::path fresh(const std::string& path) const { return folder_ / (path + ".new"); }

  const fs::path folder_;
  Disk& disk_;
};

std::string settings_text(const Prefix& prefix, const fs::path& generation, const GenerationRecord& record,
                          const std::string& python) {
  return "home = " + (generation / "bin").string() +
         "\ninclude-system-site-packages = true\nversion = " + python.substr(6) +
         "\nexecutable = " + (generation / record.interpreter).string() + std::string(kMark) +
         prefix.folder().string() + "\nsealift-generation = " + std::to_string(record.number) + "\n";
}

std::string activate_text(const Prefix& prefix, const fs::path& generation, const GenerationRecord& record,
                          const fs::path& folder) {
  const std::string gone = "generation " + std::to_string(record.number) +
                           " is gone; put this on another one: " + "sealift-install venv '" + folder.string() +
                           "' --prefix '" + prefix.folder().string() + "'";
  return filled(kActivate, {{"FOLDER", quoted(folder.string())},
                            {"GENERATION", quoted(generation.string())},
                            {"GONE", quoted(gone)},
                            {"PREFIX", quoted(prefix.folder().string())},
                            {"VARIABLES", in_sh(variables_for(prefix, record), quoted(generation.string()))}});
}

// For pip without activation, too.
std::string pip_text(const SiteSettings& site) {
  return "[global]\nindex-url = " + site.repository + "/simple/\n" +
         (site.certificates.empty() ? "" : "cert = " + site.certificates.string() + "\n");
}

GenerationRecord record_with_interpreter(const VenvOptions& options) {
  GenerationRecord record = record_for_receipt(options.prefix, options.generation);
  const fs::path generation = options.prefix.generation(record.number);
  std::error_code ignored;
  if (record.site_packages.empty() || !fs::exists(generation / record.interpreter, ignored))
    refuse(ErrorCode::Missing, "this generation brings no interpreter", generation, "choose another one");
  return record;
}

}  // namespace

Venv make_venv(const VenvOptions& options, Disk& disk) {
  const Prefix& prefix = options.prefix;
  require_own(Prefix(options.folder).folder());  // as it was named: through each link
  const fs::path folder = place_of(options);
  check_folder(folder);
  if (::geteuid() == 0) require_own(prefix.generations());  // whose programs root will run
  const GenerationRecord record = record_with_interpreter(options);
  const fs::path generation = fs::canonical(prefix.generation(record.number));
  const SiteSettings site = site_settings(prefix);
  Venv venv{.folder = folder, .generation = record.number, .known = owns(prefix), .repository = site.repository};
  check_parts(folder, record.site_packages);
  if (venv.known) tell_gc(prefix, record.number, folder, disk);

  const std::string python = fs::path(record.site_packages).parent_path().filename().string();  // python3.11
  std::error_code ignored;
  venv.has_pip = fs::exists(generation / record.site_packages / "pip/__main__.py", ignored);
  disk.make_folders(folder);
  const Anchored anchored(disk, folder);
  VenvWriter writer(folder, disk);
  writer.make_folders("bin");
  writer.make_folders(record.site_packages);
  writer.link("bin/python", (generation / record.interpreter).string());
  for (const std::string& name : {std::string("python3"), python}) writer.link("bin/" + name, "python");
  writer.write("bin/activate", activate_text(prefix, generation, record, folder));
  if (venv.has_pip)
    writer.write("bin/pip", "#!/bin/sh\nexec " + quoted((folder / "bin/python").string()) + " -m pip \"$@\"\n", 0755);
  if (!site.repository.empty()) writer.write("pip.conf", pip_text(site));
  writer.write("pyvenv.cfg", settings_text(prefix, generation, record, python));
  return venv;
}

}  // namespace sealift::installer
