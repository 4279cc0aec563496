// SPDX-License-Identifier: Apache-2.0
// Every ELF file of a bundle as a value: the interpreter's tree, each wheel, each program, laid out as the installer
// will lay them out. First half of the native check; the second half, native_check, never touches a disk.
// A file is streamed out of its wheel through a scratch file, as its tables lie at both ends and it may be of any size.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/host/console.hpp"
#include "packager/job/lock.hpp"
#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

struct NativeFile {
  std::string path;   // below the generation's root
  std::string owner;  // for messages: a wheel's file name, "the interpreter", "the program bin/x"
  bool from_wheel = false;
  bundle::ElfFile elf;
  std::string fault;               // why it cannot be read; then `elf` says nothing
  std::vector<std::string> names;  // of libraries, found as text in it

  std::string folder() const { return path.substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/')); }
  std::string file_name() const { return path.substr(path.rfind('/') + 1); }
};

struct NativeFiles {
  std::vector<NativeFile> files;             // sorted by path
  std::map<std::string, std::string> links;  // of the interpreter's tree: path -> path that it means
};

// Throws Digest or Format when a wheel does not hold, and Format when tables are too large for any real bundle.
// Object files and code for GPUs are ELF too, but ld.so never sees them: they are left out.
NativeFiles read_native_files(const Lock& lock, const Cache& cache, Console& console);

}  // namespace sealift::packager
