// SPDX-License-Identifier: Apache-2.0
// Finds the shared libraries that an interpreter and its programs need and a minimal target lacks, by reading ELF files
// as the dynamic linker of this machine would, and checks that the target's glibc is new enough for all of them.
// What belongs to the target (system_libraries.hpp) is never carried.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

struct NativeNeed {
  std::string who;  // a file, for messages
  bundle::GlibcVersion glibc;
};

struct NativeClosure {
  std::map<std::string, std::filesystem::path> libraries;  // name as others need it -> the file on this machine
  std::vector<NativeNeed> needs;                           // of every file that was read
  std::set<std::string> from_wheels;                       // found in a site-packages folder, or nowhere
};

class NativeResolver {
 public:
  // Searches `folders` after the folders that the files themselves name. `of_host` are patterns of host_libraries.hpp:
  // what they name is neither looked for nor carried.
  NativeResolver(std::string arch, std::vector<std::filesystem::path> folders, std::vector<std::string> of_host = {})
      : arch_(std::move(arch)), folders_(std::move(folders)), of_host_(std::move(of_host)) {}

  // What /etc/ld.so.conf names, then the linker's defaults.
  static std::vector<std::filesystem::path> system_folders(const std::string& arch,
                                                           const std::filesystem::path& conf = "/etc/ld.so.conf");
  // The linker's defaults below the root `system`; those of this machine when that is empty.
  static std::vector<std::filesystem::path> folders_of(const std::filesystem::path& system, const std::string& arch);

  // Adds everything that the ELF file `file` needs; `name` is for messages. Returns the libraries that are not there,
  // and then adds nothing. A file that is not ELF, or a static program, needs nothing. Throws Platform when it is of
  // another architecture.
  std::vector<std::string> add(const std::filesystem::path& file, const std::string& name);
  // The same for a program whose other libraries come from wheels: it returns the libraries that this machine lacks.
  std::vector<std::string> add_program(const std::filesystem::path& file, const std::string& name);
  // Whether the job says that the target has this library.
  bool is_of_host(const std::string& library) const;
  // Adds a library that nothing has asked for, such as libstdc++.so.6, if this machine has it and it needs no newer
  // glibc than `newest`.
  bool offer_library(const std::string& library, bundle::GlibcVersion newest);

  const NativeClosure& closure() const { return closure_; }

 private:
  struct Walk;
  void visit(const std::filesystem::path& file, const std::string& name, const std::string& inherited_rpath,
             Walk& walk);
  void visit_needed(const std::string& wanted, const std::filesystem::path& by, const bundle::ElfFile& elf,
                    const std::string& inherited_rpath, Walk& walk);
  std::filesystem::path find(const std::string& library, const std::vector<std::string>& first) const;
  void merge(const Walk& walk);

  std::string arch_;
  std::vector<std::filesystem::path> folders_;
  std::vector<std::string> of_host_;
  NativeClosure closure_;
};

// Throws Platform, listing who needs what, when something needs a newer glibc than the target promises; else returns
// the newest that is needed.
bundle::GlibcVersion check_glibc_floor(const std::vector<NativeNeed>& needs, bundle::GlibcVersion target);

}  // namespace sealift::packager
