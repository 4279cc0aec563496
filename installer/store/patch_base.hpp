// SPDX-License-Identifier: Apache-2.0
// The store item that a patched wheel builds on: its files by their SHA-256, each mapped while it is used.
// Nothing of it is trusted: what is made from a file is held to its own digest, and only where that is wrong, the file
// is hashed, to say whose fault it is.
#pragma once

#include <map>

#include "installer/store/item_record.hpp"
#include "installer/store/store.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"

namespace sealift::installer {

class PatchBase {
 public:
  // Of `entry`, which is carried as a patch. Throws Missing when the store lacks the item, Format when its record is
  // damaged.
  PatchBase(const Store& store, const bundle::Entry& entry);

  // Makes `file` of `wheel` from the file with the SHA-256 `from`. Throws Missing when the item has no such file,
  // Digest when what comes out is not what was signed, and what PatchedWheel::rebuild throws.
  void rebuild(bundle::PatchedWheel& wheel, const bundle::WheelFile& file, const bundle::Digest& from,
               const bundle::ByteSink& sink) const;

 private:
  std::string for_;
  std::filesystem::path item_;
  bundle::Descriptor folder_;
  std::map<bundle::Digest, StoredFile> files_;
};

}  // namespace sealift::installer
