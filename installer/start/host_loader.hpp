// SPDX-License-Identifier: Apache-2.0
// Runs a program through the dynamic linker that it names, in this process, with variables that only that linker sees.
// execve would hand them to the program, and so to every child of it: a library of the environment would be loaded into
// the host's own programs. ld.so's options --library-path and --argv0 would do for glibc 2.33 and newer; this does for
// each. Part of sealift-start.
#pragma once

#include "installer/start/given.hpp"

namespace sealift::installer {

// A variable for the dynamic linker: NAME=VALUE in memory that stays.
struct LinkerVariable {
  char* text;
  bool read_once;  // the linker copies it when it starts: copies of the environment lose it too
};

// Becomes the dynamic program `program` with the same arguments and environment. ld.so sees `variables` in place of
// those of the same names; before the program's first instruction the environment is what it was. (What a library's
// constructor starts still sees them.) Returns when the program cannot be started this way: it is a script, or static,
// or asks for an executable stack, or its dynamic linker is not there.
void start_with(const LinkerVariable* variables, int count, const char* program, const Given& given);

}  // namespace sealift::installer
