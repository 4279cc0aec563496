// SPDX-License-Identifier: Apache-2.0
// A site whose bundles bring a whole Python: the host's interpreter and a part of its library, with sealift-start in
// front as the packager puts it. For tests of what users really start; where the host has no such Python they say so.
#pragma once

#include "tests/installer/host_python.hpp"
#include "tests/support/left_out.hpp"

namespace sealift::test {

inline const fs::path kHostInterpreter = "/usr/bin/python3.11";
inline const fs::path kHostLibrary = "/usr/lib/python3.11";

inline bool host_interpreter_is_there() {
  if (::access(kHostInterpreter.c_str(), X_OK) == 0 && fs::exists(kHostLibrary / "os.py")) return true;
  sealift::test::left_out("there is no ", kHostInterpreter);
  return false;
}

// Modules that lie in the library itself, and the packages that starting and these tests need.
inline void add_library(std::vector<std::pair<bundle::TarMember, std::string>>& members) {
  std::map<std::string, fs::path> files;
  for (const fs::path& folder : {fs::path(), fs::path("encodings"), fs::path("collections"), fs::path("importlib"),
                                 fs::path("json"), fs::path("re")})
    for (const fs::directory_entry& file : fs::directory_iterator(kHostLibrary / folder))
      if (file.path().extension() == ".py" && !file.is_symlink())
        files["lib/python3.11" / folder / file.path().filename()] = file.path();
  files.erase("lib/python3.11/sitecustomize.py");
  for (const auto& [place, file] : files) members.emplace_back(tar_file(place), read_file(file));
  members.emplace_back(tar_file("lib/python3.11/sitecustomize.py"),
                       "import os, site, sys\nif sys.prefix == sys.base_prefix:\n"
                       "    site.addsitedir(os.path.join(sys.prefix, 'lib/python3.11/site-packages'))\n");
}

inline TinyItem made_python() {
  std::vector<std::pair<bundle::TarMember, std::string>> members = {
      {tar_link("bin/python", "python3.11"), ""},
      {tar_link("bin/python3", "python3.11"), ""},
      {tar_file("bin/python3.11", true), read_file(SEALIFT_START)},
      {tar_file("libexec/python3.11", true), read_file(kHostInterpreter)}};
  // Without this folder Python takes its exec_prefix to be the host's, and with it the host's packages.
  members.emplace_back(tar_file("lib/python3.11/lib-dynload/README"), "compiled modules\n");
  add_library(members);
  return tree_item("trees/python.tar", members);
}

inline const TinyItem& carried_python() {
  static const TinyItem item = made_python();
  return item;
}

// A version's modules and variables say which it is.
inline TinyBundle real_python(std::uint64_t version) {
  const std::string says = "VERSION = " + std::to_string(version) + "\n";
  TinyBundle tiny{.version = version, .chunk_size = 1 << 20};
  tiny.items = {carried_python(), wheel_item({.files = {{"demo/__init__.py", says}, {"demo/late.py", says}}}),
                file_item("environment/variables", "SITE_DATA=${PREFIX}/data\nTRITON_CACHE_DIR=${CACHE}/triton\n",
                          std::string(bundle::kVariablesPlace))};
  return tiny;
}

}  // namespace sealift::test
