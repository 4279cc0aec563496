// SPDX-License-Identifier: Apache-2.0
// Reads every ELF file of a bundle: the interpreter's tree, each wheel, each program, laid out as the installer will
// lay them out. First half of the native check; the second half, native_check, never touches a disk. A file is streamed
// out of its wheel through a scratch file, as its tables lie at both ends and it may be of any size.
#pragma once

#include <string>
#include <vector>

#include "packager/content/content.hpp"
#include "packager/native/native_file.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Of the contents that are not plain data, for this Python ("3.11"). Throws Digest or Format when a wheel is not what
// was locked and cannot be repaired, and Format when tables are too large for any real bundle. Object files and code
// for GPUs are ELF too, but ld.so never sees them: they are left out.
NativeFiles read_native_files(const std::vector<Content>& contents, const std::string& python, const Cache& cache,
                              const Repair& repair, bundle::Progress& progress);

}  // namespace sealift::packager
