// SPDX-License-Identifier: Apache-2.0
// What a content becomes once it is installed: its paths, and the room that they take. Read from the content's file, so
// that what cannot be installed is refused here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packager/content/content.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

struct Installed {
  struct File {
    std::string place;                          // below the generation's root
    std::string packaged = {};                  // of a wheel's file in site-packages: its path there
    bool empty = false;                         // of that: it has no bytes
    std::optional<bundle::Digest> sha256 = {};  // of a wheel's file, or of what a program is made from
    bool yields = false;                        // an __init__.py that only extends its package's path
  };

  std::vector<File> files;
  bundle::StartupEffects startup;    // of a wheel
  std::vector<std::string> may_run;  // its .pth files that the job allows
  std::set<std::string> needs;       // of a wheel: the projects that it requires, also for an extra
  std::size_t left_out_bytecode = 0;
  std::size_t misdescribed = 0;  // files of a wheel about which its RECORD is wrong, also such as are not there
  std::set<std::string> folders;
  std::uint64_t size = 0;

  void folder(const std::string& path);
  void file(std::string path, std::uint64_t bytes) { file(File{.place = std::move(path)}, bytes); }
  void file(File one, std::uint64_t bytes);
};

// Reads its file, in an environment of this lock. Throws Digest for a program, or a tree that is read for the first
// time, that differs from the locked one (all others are compared while they are written, so that they are read only
// once) and Format for what cannot be installed.
Installed install_content(const Content& content, const Cache& cache, const Lock& lock);

// The same of a wheel that may be elsewhere: reads its directory and small members alone.
Installed install_wheel(const Content& content, bundle::ByteSource& source, const Lock& lock);

// The same of a File, of which nothing is read.
Installed install_file(const Content& content);

}  // namespace sealift::packager
