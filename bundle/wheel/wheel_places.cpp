// SPDX-License-Identifier: Apache-2.0
// The lists are what is allowed; names that are refused inside an allowed folder follow it. Called for every file of
// every wheel, so only names of the few interesting places are looked at closely.
#include "sealift/bundle/wheel/wheel_places.hpp"

#include <algorithm>
#include <iterator>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/own_places.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/native/system_libraries.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::bundle {

namespace {

// Folders of the root that a wheel's .data/data may write into, whatever the names there: nothing of the system, Python
// or Sealift reads them by itself. `external` is where pynvvideocodec, which vLLM requires, carries FFmpeg's sources.
constexpr std::string_view kOpenFolders[] = {"share", "man",      "doc",   "opt",     "external", "pkgconfig",
                                             "docs",  "examples", "tests", "samples", "notebooks"};
// Documents that many projects put into the root by setup.py's data_files, and their endings.
constexpr std::string_view kDocuments[] = {"readme",
                                           "license",
                                           "licence",
                                           "copying",
                                           "notice",
                                           "changelog",
                                           "changes",
                                           "authors",
                                           "history",
                                           "contributing",
                                           "third_party_licenses",
                                           "third_party_notices"};
constexpr std::string_view kDocumentEndings[] = {"", ".md", ".rst", ".txt"};
// Folders of lib/ beside a folder of the project's own name; files directly in lib/ are libraries.
constexpr std::string_view kLibFolders[] = {"cmake", "pkgconfig"};
// Folders below a library folder that ld.so looks into before it, for better processors; glibc below 2.37 has all.
// Source: glibc 2.36, sysdeps/{x86,unix/sysv/linux/aarch64}/dl-procinfo.h (HWCAP_IMPORTANT) and AT_PLATFORM.
constexpr std::string_view kVariants[] = {"glibc-hwcaps", "tls",    "haswell", "xeon_phi",
                                          "avx512_1",     "x86_64", "aarch64", "atomics"};
// Folders of lib/ that glibc, OpenSSL and Tcl read by themselves, or how they begin.
constexpr std::string_view kLibraryOwn[] = {"gconv", "locale", "ossl-modules", "engines", "tcl", "tk"};
// Folders of etc/ that the system's programs read.
constexpr std::string_view kSystemEtc[] = {"alternatives", "bash_completion.d", "init.d", "ld.so.conf.d", "pam.d",
                                           "pki",          "profile.d",         "ssl",    "sudoers.d",    "systemd"};
// A project may have a folder of its own name in the root, but for these.
constexpr std::string_view kRootNames[] = {"bin",     "boot", "dev", "etc",  "include", "lib", "lib32", "lib64",
                                           "libexec", "proc", "run", "sbin", "sys",     "tmp", "usr",   "var"};
// Top-level modules that Python imports by itself when it starts, if they are there: `site` the first two, an
// interactive session the next; Debian's own sitecustomize the last.
constexpr std::string_view kStartupModules[] = {"sitecustomize", "usercustomize", "readline", "rlcompleter",
                                                "apport_python_hook"};
// Modules that the standard library tries to import on every system, and that no Python for Linux has: `import copy`
// asks for org.python.core (Jython's), pathlib for nt, subprocess for msvcrt, platform for _wmi.
constexpr std::string_view kForeignModules[] = {"nt",   "msvcrt", "_winapi", "winreg", "_winreg",
                                                "_wmi", "org",    "java",    "vms_lib"};
// Compiled modules of the standard library that an interpreter may lack, and that others of it then do without.
constexpr std::string_view kOptionalModules[] = {"_bz2", "_crypt",   "_ctypes",  "_curses", "_curses_panel",
                                                 "_dbm", "_gdbm",    "_hashlib", "_lzma",   "_posixshmem",
                                                 "_ssl", "_sqlite3", "_tkinter", "_uuid",   "_zstd"};
// Programs that scripts rely on: with bin/ first in PATH a wheel's would be called instead. POSIX without its compilers
// and editors, and what else Debian calls essential.
constexpr std::string_view kSystemPrograms[] = {
    "[",        "arch",      "awk",      "base64",     "basename",  "bash",      "bc",      "bunzip2",  "bzip2",
    "cat",      "chgrp",     "chmod",    "chown",      "chroot",    "cksum",     "cmp",     "comm",     "command",
    "cp",       "crontab",   "csh",      "curl",       "cut",       "dash",      "date",    "dd",       "df",
    "diff",     "dircolors", "dirname",  "du",         "echo",      "egrep",     "env",     "expand",   "expr",
    "factor",   "false",     "fgrep",    "file",       "find",      "fish",      "flock",   "fmt",      "fold",
    "free",     "gawk",      "getconf",  "getent",     "getopt",    "gpg",       "grep",    "groups",   "gunzip",
    "gzip",     "head",      "hostid",   "hostname",   "iconv",     "id",        "install", "ionice",   "ip",
    "join",     "kill",      "killall",  "ksh",        "ld.so",     "ldconfig",  "ldd",     "less",     "link",
    "ln",       "locale",    "logger",   "login",      "logname",   "ls",        "lsof",    "mawk",     "md5sum",
    "mkdir",    "mkfifo",    "mknod",    "mktemp",     "more",      "mount",     "mv",      "nice",     "nl",
    "nohup",    "nproc",     "numfmt",   "nvidia-smi", "od",        "openssl",   "passwd",  "paste",    "pathchk",
    "perl",     "pgrep",     "ping",     "pkill",      "pr",        "printenv",  "printf",  "ps",       "pwd",
    "readlink", "realpath",  "renice",   "rm",         "rmdir",     "rsync",     "scp",     "sed",      "seq",
    "setsid",   "sftp",      "sh",       "sha1sum",    "sha256sum", "sha512sum", "shred",   "shuf",     "sleep",
    "sort",     "split",     "srun",     "ssh",        "stat",      "stdbuf",    "strings", "stty",     "su",
    "sudo",     "sum",       "sync",     "tac",        "tail",      "tar",       "tcsh",    "tee",      "test",
    "time",     "timeout",   "top",      "touch",      "tput",      "tr",        "true",    "truncate", "tty",
    "umount",   "uname",     "unexpand", "uniq",       "unlink",    "unxz",      "uptime",  "vdir",     "wc",
    "wget",     "which",     "who",      "whoami",     "xargs",     "xz",        "yes",     "zcat",     "zsh"};
// What people run with a password or as root, and what tells the state of a machine or a cluster.
constexpr std::string_view kOperatorPrograms[] = {
    "apt",     "apt-get",    "dcgmi",  "dnf",     "docker",    "doas",       "dpkg",      "git",     "gpg2",
    "ibstat",  "journalctl", "kinit",  "kubectl", "lscpu",     "lspci",      "newgrp",    "nsenter", "numactl",
    "pkexec",  "podman",     "rpm",    "runuser", "sacct",     "salloc",     "sbatch",    "scancel", "scontrol",
    "screen",  "sinfo",      "squeue", "ssh-add", "ssh-agent", "ssh-keygen", "systemctl", "taskset", "tmux",
    "unshare", "vi",         "vim",    "visudo",  "yum"};
// Folders of etc/ whose files a program of another wheel runs, or reads lines to run from, when it starts.
constexpr std::string_view kRunEtc[] = {"ipython"};
constexpr std::string_view kName = "NAME";  // of the wheel's project, in what follows
constexpr const char* kLeaveOut =
    "use a version of it without that file, or leave this wheel out: [python] excludes = [\"NAME\"] where others ask "
    "for it";

template <std::size_t N>
bool among(std::string_view name, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

PlaceFault refused(std::string why, ErrorCode code = ErrorCode::Format) {
  return {.code = code, .why = std::move(why), .next = kLeaveOut};
}

PlaceFault job_fault(std::string why) {
  return {.code = ErrorCode::Conflict, .why = std::move(why), .next = "choose another place for it: into = \"...\""};
}

bool is_shell_file(std::string_view name) {
  return name == "activate" || name.starts_with("activate.") || name == "deactivate";
}

std::string_view first_of(std::string_view path) {
  return path.substr(0, path.find('/'));
}

std::string_view last_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view below(std::string_view path) {
  const std::size_t slash = path.find('/');
  return slash == path.npos ? std::string_view() : path.substr(slash + 1);
}

// "python", "python3.11", "python3t", "pythonw.exe", "python3-config", and Windows' "python311._pth".
bool is_interpreter_name(std::string_view name) {
  if (!name.starts_with("python")) return false;
  const std::string_view rest = name.substr(std::min(name.find_first_not_of("0123456789.wtdm", 6), name.size()));
  return rest.empty() || rest == "exe" || rest == "_pth" || rest.starts_with("-config");
}

// Names that belong to the interpreter, the runtime or the target, for a library of a folder that is searched for every
// program of the environment.
bool is_reserved_library(std::string_view name) {
  return is_glibc_library(name) || is_driver_library(name) || is_interpreter_library(name);
}

bool is_read_by_library(std::string_view folder) {
  return std::any_of(std::begin(kLibraryOwn), std::end(kLibraryOwn),
                     [&](std::string_view beginning) { return folder.starts_with(beginning); });
}

PlaceFault library_of_another(std::string_view name) {
  return refused(
      "it brings a library that belongs to the runtime, the interpreter or the driver, where every program "
      "would find it: " +
          SafePath::printable(name),
      ErrorCode::Conflict);
}

std::optional<PlaceFault> fault_of_script(std::string_view folded) {
  if (folded.find('/') != folded.npos) return std::nullopt;  // no PATH leads there
  if (is_interpreter_name(folded))
    return refused("a wheel brings a program that is named as the interpreter", ErrorCode::Conflict);
  if (folded == "pyvenv.cfg" || folded == "pybuilddir.txt")
    return refused("it tells Python where its standard library is: " + std::string(folded));
  if (is_shell_file(folded))
    return refused("it brings a file that people read into their shells: " + SafePath::printable(folded));
  if (among(folded, kSystemPrograms) || among(folded, kOperatorPrograms))
    return refused("it brings a program that is named as one of the system's, and would be called instead: " +
                       SafePath::printable(folded),
                   ErrorCode::Conflict);
  return std::nullopt;
}

// lib/ itself; `rest` is below it.
std::optional<PlaceFault> fault_of_library_folder(std::string_view rest, std::string_view project) {
  const std::string_view first = first_of(rest);
  if (first.starts_with("python"))
    return refused("its .data puts a file into site-packages or the standard library by another way: lib/" +
                   SafePath::printable(rest));
  if (first == "runtime") return refused("lib/runtime is for the C library that a bundle carries");
  if (rest.find('/') == rest.npos) {
    if (is_reserved_library(rest)) return library_of_another(rest);
    return std::nullopt;
  }
  const bool own = normalized_project_name(first) == project && !among(first, kVariants) && !is_read_by_library(first);
  if (own || among(first, kLibFolders)) return std::nullopt;
  return refused("of folders in lib it may have its own, and not lib/" + SafePath::printable(first));
}

std::optional<PlaceFault> fault_of_data(std::string_view folded, std::string_view project) {
  const std::string_view first = first_of(folded), rest = below(folded);
  if (rest.empty()) {
    const std::size_t dot = std::min(first.find('.'), first.size());
    if (among(first.substr(0, dot), kDocuments) && among(first.substr(dot), kDocumentEndings)) return std::nullopt;
    return refused("it puts a file into the root of the environment: " + SafePath::printable(folded));
  }
  if (among(first, kOpenFolders)) return std::nullopt;
  if (first == "bin") return fault_of_script(rest);
  if (first == "lib") return fault_of_library_folder(rest, project);
  if (first == "include") {
    if (first_of(rest).starts_with("python")) return refused("the headers of Python are the interpreter's");
    return std::nullopt;
  }
  if (first == "etc") {
    if (below(rest).empty() || among(first_of(rest), kSystemEtc))
      return refused("it configures the system's programs: " + SafePath::printable(folded));
    if (among(first_of(rest), kRunEtc) || rest.ends_with(".py"))
      return refused("it brings settings that are code, which another package's program runs when it starts: " +
                     SafePath::printable(folded));
    return std::nullopt;
  }
  if (!among(first, kRootNames) && normalized_project_name(first) == project) return std::nullopt;
  return refused("it puts a file where no wheel may: " + SafePath::printable(folded));
}

// What Sealift reads, runs or tells people to use; `folded` is below the folder of `scheme`.
std::optional<PlaceFault> fault_of_own(Scheme scheme, const std::string& folded) {
  if (scheme != Scheme::Scripts && scheme != Scheme::Data) return std::nullopt;
  const OwnPlace* const place = own_place_of(scheme == Scheme::Scripts ? "bin/" + folded : folded);
  if (place == nullptr) return std::nullopt;
  PlaceFault fault = refused("it brings what is Sealift's own, " + std::string(place->use), ErrorCode::Conflict);
  if (place->entry.starts_with("programs/"))
    fault.next += "; Sealift's programs are carried by [[program]] name = \"...\"";
  return fault;
}

std::string_view stem_of(std::string_view name) {
  return name.substr(0, name.find('.'));
}

// Metadata that importlib.metadata would read: of this wheel only its own folder, spelled as it is.
bool is_foreign_metadata(std::string_view top, std::string_view folded_top, std::string_view dist_info) {
  if (folded_top == "egg-info") return true;
  for (const std::string_view ending : {".egg-info", ".egg-link", ".egg"})
    if (folded_top.ends_with(ending)) return true;
  return folded_top.ends_with(".dist-info") && top != dist_info;
}

// nvidia/*/lib, which sealift-start lists for the dynamic linker and torch's libraries search before their own folder;
// `inner` is below nvidia/*. NVIDIA's projects are known by their names.
std::optional<PlaceFault> fault_of_cuda_folder(std::string_view inner, std::string_view project) {
  if (first_of(inner) != "lib" || below(inner).empty()) return std::nullopt;
  const std::string_view library = below(inner), name = last_of(inner);
  if (library == name) {
    if (is_reserved_library(name)) return library_of_another(name);
  } else if (among(first_of(library), kVariants)) {
    return refused("it brings a library for some processors only, which ld.so would take first: " +
                   SafePath::printable(inner));
  }
  if (project.starts_with("nvidia-")) return std::nullopt;
  return refused(
      "the dynamic linker searches nvidia/*/lib for every program, and it belongs to NVIDIA's packages: nvidia/" +
          SafePath::printable(inner),
      ErrorCode::Conflict);
}

std::optional<PlaceFault> fault_of_package(std::string_view path, std::string_view folded, std::string_view dist_info,
                                           std::string_view project) {
  const std::string_view top = first_of(folded), rest = below(folded);
  if (is_foreign_metadata(first_of(path), top, dist_info))
    return refused("it brings metadata of another project or version: " + SafePath::printable(first_of(path)));
  const std::string_view module = top == "__pycache__" ? stem_of(rest) : stem_of(top);
  if (among(module, kStartupModules) || module.starts_with("_sysconfigdata"))
    return refused("it runs code when Python starts: " + SafePath::printable(path));
  const bool is_module = !rest.empty() || top.ends_with(".py") || top.ends_with(".pyc") || top.ends_with(".so");
  if (is_module && (among(module, kForeignModules) || among(module, kOptionalModules)))
    return refused(
        "it brings a module that the standard library asks for and lacks; its code would run as a part of the "
        "library: " +
            SafePath::printable(path),
        ErrorCode::Conflict);
  if (rest.empty() && (top.ends_with(".start") || top.ends_with(".site.toml")))
    return refused("it runs code when Python starts (3.15): " + SafePath::printable(path));
  if ((top == "_distutils_hack" || top == "distutils-precedence.pth") && project != "setuptools")
    return refused("it brings what runs when Python starts and belongs to setuptools: " + SafePath::printable(path),
                   ErrorCode::Conflict);
  const std::string_view name = last_of(folded);
  const bool is_library = name.find(".so") != name.npos || name.find("-2.") != name.npos;
  if (is_library && is_glibc_library(name)) return library_of_another(name);
  if (top == "nvidia") return fault_of_cuda_folder(below(rest), project);
  return std::nullopt;
}

// lib/ itself, for an entry of the job; `rest` is below it.
std::optional<PlaceFault> fault_of_job_library(std::string_view rest) {
  const std::string_view first = first_of(rest);
  if (first.starts_with("python"))
    return job_fault("site-packages and the standard library belong to wheels and to the interpreter");
  if (first == "runtime") return job_fault("lib/runtime is for the C library that a bundle carries");
  if (rest.find('/') != rest.npos && among(first, kVariants))
    return job_fault("ld.so would take a library there before all others");
  if (rest.find('/') == rest.npos && (is_glibc_library(rest) || is_driver_library(rest)))
    return job_fault("this library belongs to the C library or to the driver");
  return std::nullopt;
}

}  // namespace

bool is_cached_bytecode(std::string_view path) {
  if (!path.ends_with(".pyc")) return false;
  const std::size_t slash = path.rfind('/');
  const std::string_view folder = slash == path.npos ? std::string_view() : path.substr(0, slash);
  return folder == "__pycache__" || folder.ends_with("/__pycache__");
}

std::optional<PlaceFault> fault_of_entry_place(std::string_view path, std::string_view interpreter) {
  const std::string folded = place_spelling(path);
  const std::string_view first = first_of(folded), rest = below(folded), name = last_of(folded);
  if (first == "lib") return fault_of_job_library(rest);
  if (first == "include" && first_of(rest).starts_with("python"))
    return job_fault("the headers of Python are the interpreter's");
  const bool is_program = first == "bin" || first == "libexec";
  if (path == interpreter || (!rest.empty() && (!is_program || rest.find('/') != rest.npos))) return std::nullopt;
  if (name == "pyvenv.cfg" || name == "pybuilddir.txt" || name.ends_with("._pth"))
    return job_fault("it would tell Python where its modules are");
  if (!is_program) return std::nullopt;
  if (is_interpreter_name(rest)) return job_fault("a program that is named as the interpreter is the interpreter's");
  if (is_shell_file(rest)) return job_fault("people read a file of this name into their shells");
  return std::nullopt;
}

std::optional<PlaceFault> fault_of_place(Scheme scheme, std::string_view path, std::string_view dist_info) {
  const std::string folded = place_spelling(path);
  const std::string project = normalized_project_name(dist_info.substr(0, dist_info.find('-')));
  if (auto fault = fault_of_own(scheme, folded)) return fault;
  switch (scheme) {
    case Scheme::SitePackages:
      return fault_of_package(path, folded, dist_info, project);
    case Scheme::Scripts:
      return fault_of_script(folded);
    case Scheme::Data:
      return fault_of_data(folded, project);
    case Scheme::Headers:  // a folder of the project's own
      if (dist_info.starts_with('.')) return refused("its name is no project's: " + SafePath::printable(dist_info));
      break;
  }
  return std::nullopt;
}

void check_place(Scheme scheme, std::string_view path, std::string_view dist_info, const std::string& wheel) {
  std::optional<PlaceFault> fault = fault_of_place(scheme, path, dist_info);
  if (!fault) return;
  if (const std::size_t name = fault->next.find(kName); name != fault->next.npos)
    fault->next.replace(name, kName.size(), normalized_project_name(dist_info.substr(0, dist_info.find('-'))));
  throw Error(fault->code, {.what = "a wheel is not acceptable: " + fault->why,
                            .where = wheel,
                            .got = SafePath::printable(path),
                            .next = fault->next});
}

}  // namespace sealift::bundle
