// SPDX-License-Identifier: Apache-2.0
// An interpreter for another kind of processor than the packing machine's, such as aarch64's on x86-64. It cannot be
// asked about itself, so its files are: where things are is what CPython's own layout says. Part of finding an
// interpreter.
#pragma once

#include <filesystem>
#include <string>

#include "packager/interpreter/interpreter_facts.hpp"

namespace sealift::packager {

// The newest Python `version` ("3.11") for `arch` among uv's own ones; its executable. Throws Missing,
// naming `where`.
std::filesystem::path find_foreign(const std::string& version, const std::string& arch, const std::filesystem::path& uv,
                                   const std::string& where);

// What the Python 3.N (`minor`: "3.11") at PREFIX/bin/EXECUTABLE says by its files: PREFIX/lib/python3.N, the version
// in the executable or in libpython, the built-in modules in _sysconfigdata. Throws Platform when that is not CPython's
// layout, or not of this version.
Interpreter read_foreign(const std::filesystem::path& executable, const std::string& minor, const std::string& arch);

}  // namespace sealift::packager
