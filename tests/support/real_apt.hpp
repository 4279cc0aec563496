// SPDX-License-Identifier: Apache-2.0
// The real apt with a state of its own; nothing of this machine's is touched.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/real_gpg.hpp"

namespace sealift::test {

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
