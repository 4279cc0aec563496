// SPDX-License-Identifier: Apache-2.0
// What a wheel would run whenever Python starts: lines of .pth files, sitecustomize. No program asked for it and no
// import names it, so it is refused, except for the two lines that setuptools is known to write, letter by letter.
// Source: the documentation of Python's `site` module; setuptools/namespaces.py.
#pragma once

#include <string>
#include <string_view>

namespace sealift::bundle {

namespace detail {

// The line of setuptools' distutils-precedence.pth, which replaces `distutils` with setuptools' own copy.
// `unless_asked` is what an unset SETUPTOOLS_USE_DISTUTILS counts as: "local" or "stdlib".
std::string distutils_line(std::string_view unless_asked);

// The line that makes `package` a namespace, as setuptools wrote it for Python 3 alone or, with `both`, for 2 and 3.
std::string namespace_line(const std::string& package, bool both);

}  // namespace detail

// Why the .pth file with this text must not be installed; empty when it may be. Its lines may be comments, folders
// inside site-packages, or the known lines above.
std::string fault_of_pth(std::string_view text);

// True for a top-level name of site-packages that Python imports by itself when it starts.
bool is_startup_module(std::string_view path);

}  // namespace sealift::bundle
