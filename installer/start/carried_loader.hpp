// SPDX-License-Identifier: Apache-2.0
// Runs a program through the dynamic linker that an environment carries, in this process: the linker is mapped as the
// kernel would map it, and jumped to. With execve of the linker, /proc/self/exe (which programs execute to start copies
// of themselves), the process's name and its command line would be the linker's. This way they stay those of
// PREFIX/bin/NAME. Part of sealift-start.
#pragma once

#include "installer/start/given.hpp"

namespace sealift::installer {

// Becomes `program`, started by `loader` (glibc's, 2.33 or newer) with argv[0] and all that follows. `library_path` is
// for this process only: nothing is put into the environment, so programs that it starts are the host's own. Returns
// only when it could not be done; errno says why.
void start_through(const char* loader, const char* library_path, const char* program, const Given& given);

}  // namespace sealift::installer
