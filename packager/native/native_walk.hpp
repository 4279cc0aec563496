// SPDX-License-Identifier: Apache-2.0
// Loads every native file of a bundle as ld.so would, on paper: each program in a process of its own, each library in
// that of the interpreter, where what was loaded before is found by its SONAME. Pure; native_check judges the outcome.
#pragma once

#include <elf.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "packager/native/native_files.hpp"

namespace sealift::packager {

// Files are meant by their position in NativeFiles::files.
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
  // Files with this SONAME or file name, whether they fit or not.
  std::vector<std::size_t> named(const std::string& name) const;
  // Every SONAME, file name and link name.
  const std::map<std::string, std::vector<std::size_t>>& names() const { return names_; }

 private:
  const NativeFiles& files_;
  std::string arch_;
  std::map<std::string, std::size_t> paths_;
  std::map<std::string, std::vector<std::size_t>> names_;
};

// A program that does not start by itself: `by`, which it loads, wants a library that is not found from there.
struct ProgramGap {
  std::size_t program;
  std::size_t by;
  std::string wanted;
};

struct NativeWalk {
  std::size_t needed = 0;                                            // NEEDED entries of all files
  std::map<std::pair<std::size_t, std::string>, std::size_t> found;  // who, wanted -> file; in any process
  std::set<std::size_t> opened;                                      // by name, as the table says
  std::vector<ProgramGap> gaps;
};

inline bool is_program(const NativeFile& file) {
  return !file.elf.interpreter.empty() || file.elf.type == ET_EXEC;
}

// Behind the launcher, which gives it the carried loader and lib/ to search, where there is a carried one.
inline bool is_launched(const NativeFile& file) {
  return file.path.starts_with("libexec/");
}

// `interpreter` is the path of the program whose process imports the libraries; it may be missing.
NativeWalk walk_native(const NativeIndex& index, const std::string& interpreter, bool carried_runtime = false);

// Files that need themselves through others, or stand between such.
std::set<std::size_t> in_circles(const NativeWalk& walk);

}  // namespace sealift::packager
