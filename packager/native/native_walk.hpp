// SPDX-License-Identifier: Apache-2.0
// Simulates how ld.so would load every native file of a bundle: each program in a process of its own, each library in
// the interpreter's, where a library that is loaded already is found by its SONAME. Pure; native_check judges the
// outcome.
#pragma once

#include <elf.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "packager/native/native_file.hpp"

namespace sealift::packager {

// Files are identified by their position in NativeFiles::files.
class NativeIndex {
 public:
  NativeIndex(const NativeFiles& files, std::string arch);

  const NativeFile& at(std::size_t file) const { return files_.files[file]; }
  std::size_t size() const { return files_.files.size(); }
  const std::string& arch() const { return arch_; }
  // Readable, and of the target's architecture.
  bool fits(std::size_t file) const { return at(file).fault.empty() && at(file).elf.arch == arch_; }
  // A file that fits at this path, links followed.
  std::optional<std::size_t> find(const std::string& path) const;
  // Files with this SONAME or file name, whatever their architecture.
  std::vector<std::size_t> named(const std::string& name) const;
  // Whether a file that fits is among them.
  bool brings(const std::string& name) const;
  // Whether the target has it: glibc, the GPU's driver, or what the job says.
  bool is_of_target(const std::string& name) const;
  // Every SONAME, file name and link name.
  const std::map<std::string, std::vector<std::size_t>>& names() const { return names_; }

 private:
  const NativeFiles& files_;
  std::string arch_;
  std::map<std::string, std::size_t> paths_;
  std::map<std::string, std::vector<std::size_t>> names_;
};

// A program that would not start: `by`, which it loads, needs a library that is not found from there.
struct ProgramGap {
  std::size_t program;
  std::size_t by;
  std::string wanted;
};

struct NativeWalk {
  std::size_t needed = 0;                                            // NEEDED entries of all files
  std::map<std::pair<std::size_t, std::string>, std::size_t> found;  // who, wanted -> file; in any process
  std::set<std::size_t> opened;                                      // by name, according to the table
  std::vector<ProgramGap> gaps;
};

inline bool is_program(const NativeFile& file) {
  return !file.elf.interpreter.empty() || file.elf.type == ET_EXEC;
}

// Whether Python imports it.
inline bool is_extension(const NativeFile& file) {
  const std::string name = file.file_name();
  return name.ends_with(".abi3.so") || (name.ends_with(".so") && name.find(".cpython-") != name.npos);
}

// Whether the launcher starts it, which adds lib/ to the search path when a loader is carried.
inline bool is_launched(const NativeFile& file) {
  return file.path.starts_with("libexec/");
}

// `interpreter` is the path of the program whose process imports the libraries; it may be missing.
NativeWalk walk_native(const NativeIndex& index, const std::string& interpreter, bool carried_runtime = false);

// Files on a dependency cycle, or on a path between two cycles.
std::set<std::size_t> on_cycles(const NativeWalk& walk);

}  // namespace sealift::packager
