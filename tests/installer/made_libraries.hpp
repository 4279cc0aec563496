// SPDX-License-Identifier: Apache-2.0
// Native files that the host's compiler makes, as the files of a bundle for this machine, and the host's python3 to
// load them. A test that finds neither says so and passes.
#pragma once

#include <utility>
#include <vector>

#include "tests/installer/host_python.hpp"
#include "tests/support/left_out.hpp"

namespace sealift::test {

inline bool host_has_tools() {
  if (!host_python_is_there()) return false;
  if (::access("/usr/bin/cc", X_OK) == 0) return true;
  sealift::test::left_out("there is no /usr/bin/cc");
  return false;
}

// Libraries and programs made in a folder.
struct LibraryShop {
  TempDir dir;

  // `links` are other files of the shop. Gives the bytes.
  std::string make(const std::string& name, const std::string& code, const std::string& flags = "-shared",
                   const std::vector<std::string>& links = {}) const {
    write_file(dir / "code.c", code);
    std::string command =
        "cc -x c " + (dir / "code.c").string() + " -x none -fPIC " + flags + " -o " + (dir / name).string();
    for (const std::string& link : links) command += " " + (dir / link).string();
    REQUIRE(std::system(command.c_str()) == 0);
    return read_file(dir / name);
  }
  std::string library(const std::string& soname, const std::string& code,
                      const std::vector<std::string>& links = {}) const {
    return make(soname, code, "-shared -Wl,--no-as-needed -Wl,-soname," + soname, links);
  }
};

inline TinyBundle bundle_with(const std::vector<std::pair<std::string, std::string>>& files) {
  TinyBundle tiny{.arch = installer::probe().target.arch};
  tiny.items = {host_python()};
  const std::string packages = tiny.site_packages + "/";
  for (const auto& [path, bytes] : files)
    if (path.starts_with(packages))  // where only wheels may place something
      tiny.items.push_back(wheel_item({.name = "module", .files = {{path.substr(packages.size()), bytes}}}));
    else
      tiny.items.push_back(file_item("files/" + path, bytes, path, path.starts_with("bin/")));
  return tiny;
}

struct HostSite : Site {
  HostSite() { machine.target.arch = installer::probe().target.arch; }
};

}  // namespace sealift::test
