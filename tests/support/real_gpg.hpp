// SPDX-License-Identifier: Apache-2.0
// The real gpg with a key of its own; nothing of this machine's is touched.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/shell.hpp"

namespace sealift::test {

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

// gpg's keyring of this process, for as long as this lives.
struct GpgHome {
  explicit GpgHome(const OpenPgpKey& key) { ::setenv("GNUPGHOME", key.home().c_str(), 1); }
  ~GpgHome() { ::unsetenv("GNUPGHOME"); }
};

}  // namespace sealift::test
