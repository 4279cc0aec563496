// SPDX-License-Identifier: Apache-2.0
// A made authority for certificates, by the program openssl.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/support/shell.hpp"

namespace sealift::test {

// An authority, and what it signs; each name gives NAME.pem and NAME.key.
class Authority {
 public:
  explicit Authority(const std::filesystem::path& folder) : folder_(folder) {
    std::filesystem::create_directories(folder);
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority "
        "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.pem");
    write_file(folder / "ext", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  }

  void sign(const std::string& name, const std::string& common_name, int days = 2) const {
    openssl("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=" + common_name + "' -keyout " + name +
            ".key -out " + name + ".csr && openssl x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -days " +
            std::to_string(days) + " -extfile ext -out " + name + ".pem");
    std::filesystem::permissions(key(name), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  std::filesystem::path certificate(const std::string& name) const { return folder_ / (name + ".pem"); }
  std::filesystem::path key(const std::string& name) const { return folder_ / (name + ".key"); }

 private:
  void openssl(const std::string& words) const {
    const ShellRan ran = run_shell("cd '" + folder_.string() + "' && umask 077 && openssl " + words, folder_ / "log");
    REQUIRE_MESSAGE(ran.status == 0, ran.output);
  }

  std::filesystem::path folder_;
};

}  // namespace sealift::test
