// SPDX-License-Identifier: Apache-2.0
// What a wheel would run whenever Python starts: lines of .pth files, sitecustomize. No program asked for it and no
// import names it, so it is refused, except for the two lines that setuptools is known to write, letter by letter.
// Source: the documentation of Python's `site` module; setuptools/namespaces.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sealift::bundle {

namespace detail {

// The line of setuptools' distutils-precedence.pth, which replaces `distutils` with setuptools' own copy.
// `unless_asked` is what an unset SETUPTOOLS_USE_DISTUTILS counts as: "local" or "stdlib".
std::string distutils_line(std::string_view unless_asked);

// The line that makes `package` a namespace, as setuptools wrote it for Python 3 alone or, with `both`, for 2 and 3.
std::string namespace_line(const std::string& package, bool both);

}  // namespace detail

// What a .pth file does when Python starts. Read so that every Python from 3.8 on reads the same: they differ about
// which characters end a line, so a file with any of those is refused.
struct StartupFile {
  std::string fault;                    // why it must not be installed; empty when it may be
  bool distutils = false;               // has the line of setuptools' distutils-precedence.pth
  std::vector<std::string> folders;     // below site-packages, which it adds to the module path
  std::vector<std::string> namespaces;  // "google.cloud": packages that it makes modules of
};

StartupFile read_pth(std::string_view text);

// The fault of read_pth.
std::string fault_of_pth(std::string_view text);

// True for the path of a file of site-packages that Python reads as a .pth file, in whatever case.
bool is_pth(std::string_view path);

}  // namespace sealift::bundle
