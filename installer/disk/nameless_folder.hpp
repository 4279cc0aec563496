// SPDX-License-Identifier: Apache-2.0
// Where a run writes what nobody is to see yet, in a folder of the operator's own: beside what it is for, so that a
// link or a rename can name it. The lock on it ends with the process that holds it, so the next run knows what a killed
// one has left, and removes it: it may be as large as the whole bundle.
#pragma once

#include <filesystem>
#include <string_view>

#include "installer/disk/disk.hpp"

namespace sealift::installer {

class NamelessFolder {
 public:
  // A new folder below `into`, with a name that begins so and that no other run has, also on another host. First
  // removes what killed runs of this user left there under such names. Where a file system has no locks nothing is
  // removed.
  NamelessFolder(Disk& disk, const std::filesystem::path& into, std::string_view begin);
  NamelessFolder(const NamelessFolder&) = delete;
  NamelessFolder& operator=(const NamelessFolder&) = delete;
  // Goes with all that is in it, unless it became something.
  ~NamelessFolder();

  const std::filesystem::path& path() const { return path_; }

  // Makes all of it durable, then gives it this name. Throws Conflict where something stands there.
  void become(const std::filesystem::path& folder);

 private:
  Disk& disk_;
  std::filesystem::path path_;
  bundle::Descriptor lock_;
};

}  // namespace sealift::installer
