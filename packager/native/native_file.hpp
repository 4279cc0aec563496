// SPDX-License-Identifier: Apache-2.0
// What the native check knows of one ELF file, and of all of a bundle, as plain values: native_files reads them,
// native_cache keeps them between runs, native_walk and native_check judge them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/native/elf.hpp"
#include "sealift/bundle/native/elf_symbols.hpp"
#include "sealift/bundle/native/gpu_code.hpp"

namespace sealift::packager {

inline constexpr const char* kInterpreterOwner = "the interpreter";

struct NativeFile {
  std::string path;   // below the generation's root
  std::string owner;  // for messages: a wheel's file name, "the interpreter", "the program bin/x"
  bool from_wheel = false;
  bundle::Digest sha256 = {};  // of a wheel's file, as its RECORD promises
  bundle::ElfFile elf;
  std::string fault;               // why it cannot be read; then `elf` says nothing
  std::vector<std::string> names;  // of libraries, found as text in it
  bundle::ElfSymbols symbols = {};
  bundle::GpuCode gpu = {};
  std::string gpu_fault = {};  // why its code for GPUs cannot be read

  std::string folder() const { return path.substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/')); }
  std::string file_name() const { return path.substr(path.rfind('/') + 1); }
};

struct NativeFiles {
  std::vector<NativeFile> files;             // sorted by path
  std::map<std::string, std::string> links;  // of the interpreter's tree: path -> path that it means
  std::vector<std::string> of_host = {};     // patterns of libraries that the target has itself
};

}  // namespace sealift::packager
