// SPDX-License-Identifier: Apache-2.0
// Words for bwrap; see sandbox.hpp. Its root is an empty tmpfs, so that what is not named here is not there.
#include "packager/host/sandbox.hpp"

#include "packager/host/no_keys_filter.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

using Words = std::vector<std::string>;

void add(Words& words, const std::initializer_list<std::string>& more) {
  words.insert(words.end(), more);
}

// No capability, no terminal to type into, no key, and an end with ours. As root too it is a user namespace, where
// there is one.
Words held() {
  return {find_program("bwrap").string(),
          "--unshare-user-try",
          "--unshare-ipc",
          "--unshare-pid",
          "--unshare-net",
          "--unshare-uts",
          "--unshare-cgroup-try",
          "--cap-drop",
          "ALL",
          "--new-session",
          "--die-with-parent",
          "--clearenv"};
}

// A list of them: names and numbers of all that the user has.
void hide_keys(Words& words) {
  for (const char* list : {"/proc/keys", "/proc/key-users"})
    if (std::error_code none; fs::exists(list, none)) add(words, {"--ro-bind", "/dev/null", list});
}

// Programs, libraries, and those files of /etc without which they do not start. Nothing there is secret.
void add_own_system(Words& words) {
  add(words, {"--ro-bind", "/usr", "/usr"});
  for (const char* folder : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code error;
    if (const fs::path target = fs::read_symlink(folder, error); !error)
      add(words, {"--symlink", target.string(), folder});
    else
      add(words, {"--ro-bind-try", folder, folder});
  }
  for (const char* name :
       {"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "os-release", "passwd", "group", "nsswitch.conf"})
    add(words, {"--ro-bind-try", std::string("/etc/") + name, std::string("/etc/") + name});
  add(words, {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/var/tmp"});
  hide_keys(words);
}

void add_other_system(Words& words, const OtherSystem& system) {
  add(words, {"--ro-bind", system.root.string(), "/", "--dev", "/dev"});
  std::error_code ignored;
  if (fs::is_directory(system.root / "proc", ignored)) {
    add(words, {"--proc", "/proc"});
    hide_keys(words);
  }
  if (fs::is_directory(system.root / "tmp", ignored)) add(words, {"--tmpfs", "/tmp"});
  add(words, {"--tmpfs", "/mnt"});
  for (const auto& [name, folder] : system.read_below_mnt) add(words, {"--ro-bind", folder.string(), "/mnt/" + name});
  for (const auto& [name, folder] : system.below_mnt) add(words, {"--bind", folder.string(), "/mnt/" + name});
}

ProcessResult start(Words words, const SandboxedRun& run) {
  for (const auto& [name, value] : run.environment) add(words, {"--setenv", name, value});
  const bundle::Descriptor filter = no_keys_filter();
  add(words, {"--seccomp", std::to_string(filter.get()), "--chdir", run.folder.string(), "--"});
  words.insert(words.end(), run.command.begin(), run.command.end());
  return run_in(words, {}, run.watch, {filter.get()});
}

std::string devices_in(const std::string& table) {
  std::string devices;
  for (std::size_t colon = table.find(':'); colon != std::string::npos; colon = table.find(':', colon + 1)) {
    const std::size_t line = table.rfind('\n', colon) + 1;
    const std::size_t name = table.find_first_not_of(' ', line);
    devices += (devices.empty() ? "" : ", ") + table.substr(name, colon - name);
  }
  return devices;
}

// Why this machine has no sandbox; empty when it has one. A sandbox with a network would be none.
std::string why_not() {
  if (find_program("bwrap").empty()) return "no bwrap in PATH";
  const ProcessResult result =
      run_sandboxed({.command = {"cat", "/proc/net/dev"}, .environment = {{"PATH", "/usr/bin:/bin"}}});
  if (result.exit_code != 0) return result.err.substr(0, 500);
  const std::string devices = devices_in(result.out);
  return devices == "lo" ? "" : "network devices: " + devices;
}

}  // namespace

void require_sandbox(const std::string& next, const std::string& what) {
  static const std::string why = why_not();
  if (why.empty()) return;
  throw Error(ErrorCode::CannotCheck, {.what = what + " is to be run, and this machine cannot hold it in a sandbox",
                                       .where = "bwrap",
                                       .expected = "bubblewrap, and namespaces for this user; no network device but lo",
                                       .got = why,
                                       .next = next});
}

ProcessResult run_sandboxed(const SandboxedRun& run) {
  Words words = held();
  add_own_system(words);
  for (const fs::path& path : run.readable) add(words, {"--ro-bind", path.string(), path.string()});
  for (const fs::path& path : run.writable) add(words, {"--bind", path.string(), path.string()});
  for (const fs::path& path : run.devices) add(words, {"--dev-bind", path.string(), path.string()});
  return start(std::move(words), run);
}

ProcessResult run_sandboxed(const SandboxedRun& run, const OtherSystem& system) {
  Words words = held();
  add_other_system(words, system);
  return start(std::move(words), run);
}

}  // namespace sealift::packager
