// SPDX-License-Identifier: Apache-2.0
// What an interpreter says about itself, as a value: asked where it can run, else read from its files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sealift::packager {

struct Interpreter {
  std::filesystem::path executable;
  std::string version;  // "3.11.2"
  std::string minor;    // "3.11"
  std::filesystem::path prefix;
  std::filesystem::path stdlib;
  std::filesystem::path headers;   // empty: there are none
  std::filesystem::path pyconfig;  // on multiarch systems, where the one among the headers only includes it
  std::filesystem::path wheels;    // where a distribution keeps ensurepip's wheels; empty: they are in the library
  std::vector<std::string> builtin_modules;  // the ones in the executable itself
  bool finds_site_packages = true;           // in PREFIX/lib/pythonX.Y/site-packages, without a sitecustomize of ours

  std::string site_packages() const { return "lib/python" + minor + "/site-packages"; }
  std::string description() const { return "CPython " + version; }
};

}  // namespace sealift::packager
