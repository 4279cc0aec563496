// SPDX-License-Identifier: Apache-2.0
// The real gpg with a key of its own, and the real apt with a state of its own; nothing of this machine's is touched.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace sealift::test {

struct ShellRan {
  int status;
  std::string output;  // and errors
};

inline ShellRan run_shell(const std::string& command, const std::filesystem::path& log) {
  const int status = std::system(("( " + command + " ) >'" + log.string() + "' 2>&1 < /dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_file(log)};
}

inline bool has_shell_program(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

// A keyring with one key that may sign; its agent ends with it.
class OpenPgpKey {
 public:
  // `ends`: "never", or "2y".
  explicit OpenPgpKey(const std::string& ends = "never") {
    std::filesystem::create_directory(home());
    std::filesystem::permissions(home(), std::filesystem::perms::owner_all);
    made_ =
        gpg("--passphrase '' --quick-generate-key 'Packages <packages@site.invalid>' ed25519 sign " + ends).status == 0;
    const std::string listed = gpg("--with-colons --list-secret-keys").output;
    if (const std::size_t at = listed.find("\nfpr:::::::::"); at != listed.npos)
      fingerprint_ = listed.substr(at + 13, 40);
  }
  ~OpenPgpKey() { run_shell("gpgconf --homedir '" + home().string() + "' --kill all", dir_ / "log"); }

  ShellRan gpg(const std::string& arguments) const {
    return run_shell("gpg --homedir '" + home().string() + "' --batch --yes " + arguments, dir_ / "log");
  }
  bool made() const { return made_; }
  std::filesystem::path home() const { return dir_ / "gpg"; }
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  TempDir dir_;
  bool made_ = false;
  std::string fingerprint_;
};

// apt for one source line; it has nothing installed.
class RealApt {
 public:
  explicit RealApt(const std::string& source) {
    for (const char* folder : {"etc/apt/sources.list.d", "etc/apt/preferences.d", "etc/apt/apt.conf.d",
                               "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"})
      std::filesystem::create_directories(dir_ / folder);
    write_file(dir_ / "status", "");
    write_file(dir_ / "etc/apt/sources.list", source + "\n");
    const std::string root = dir_.path().string();
    write_file(dir_ / "apt.conf",
               "Dir \"" + root + "\";\nDir::State::status \"" + root +
                   "/status\";\nAPT::Architecture \"amd64\";\nAPT::Architectures { \"amd64\"; };\n"
                   "APT::Sandbox::User \"root\";\nAPT::Update::Error-Mode \"any\";\nAcquire::Languages \"none\";\n"
                   "Acquire::http::Proxy \"DIRECT\";\nAcquire::https::Proxy \"DIRECT\";\nAcquire::Retries \"0\";\n");
  }

  // "update", "download PACKAGE": into folder().
  ShellRan run(const std::string& words) const {
    return run_shell("cd '" + dir_.path().string() + "' && APT_CONFIG='" + (dir_ / "apt.conf").string() +
                         "' LC_ALL=C apt-get -q -y " + words,
                     dir_ / "log");
  }
  const std::filesystem::path& folder() const { return dir_.path(); }

 private:
  TempDir dir_;
};

}  // namespace sealift::test
