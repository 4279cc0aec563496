// SPDX-License-Identifier: Apache-2.0
// One ELF file out of a wheel, a tar or a program, in pieces, becomes a NativeFile: what it needs and offers, its
// symbols, the names in it and its code for GPUs. native_files finds them; this reads one after another, through a
// scratch file.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "packager/native/name_scan.hpp"
#include "packager/native/native_file.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

// Whether a file that starts like this is one.
bool is_elf(std::string_view start);

class NativeIntake {
 public:
  // The file `scratch` is made and removed for each.
  explicit NativeIntake(std::filesystem::path scratch) : scratch_(std::move(scratch)) {}

  void begin();
  void feed(bundle::ByteView piece);
  // Adds the file to `files` if ld.so may be asked to load it. `file` says whose it is; a fault is a part of it.
  void end(NativeFile file, std::vector<NativeFile>& files);

 private:
  std::filesystem::path scratch_;
  std::optional<bundle::OutputFile> out_;
  NameScan scan_;
};

}  // namespace sealift::packager
