// SPDX-License-Identifier: Apache-2.0
// The repositories of make_rpms.sh, made once for a test program; and dnf as an isolated machine runs it.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace sealift::test {

// Its folders `signed` and `other`, and its keys.
inline const std::filesystem::path& rpm_repositories() {
  static const TempDir dir;
  static const bool made = [] {
    const std::string command = std::string(SEALIFT_MAKE_RPMS) + " " + dir.path().string();
    if (std::system(command.c_str()) != 0)
      throw std::runtime_error("make_rpms.sh failed; it says above what is missing");
    return true;
  }();
  (void)made;
  return dir.path();
}

// Installs `package` into the empty folder `root` from the repository at `url` alone, holding each package to the keys
// at `keys`, and with `repo_gpgcheck` the index too. dnf's exit status; what it says is in ROOT.log.
inline int dnf_install(const std::filesystem::path& root, const std::string& url, const std::string& keys,
                       const std::string& package, bool repo_gpgcheck = false) {
  std::filesystem::create_directories(root);
  const std::string log = root.string() + ".log";
  const std::string command =
      std::string(::geteuid() == 0 ? "" : "unshare --map-root-user ") + "env HOME=" + root.string() +
      " dnf -y --installroot=" + root.string() + " --releasever=9 --setopt=reposdir=/nowhere --disablerepo='*'" +
      " --setopt=plugins=0 --setopt=cachedir=" + root.string() + "/cache --repofrompath=sealift," + url +
      " --setopt=sealift.gpgcheck=1 --setopt=sealift.gpgkey=" + keys +
      (repo_gpgcheck ? " --setopt=sealift.repo_gpgcheck=1" : "") + " install " + package + " > " + log + " 2>&1";
  return std::system(command.c_str());
}

}  // namespace sealift::test
