// SPDX-License-Identifier: Apache-2.0
// One wheel that several threads unpack: each reads its own ranges of the verified payload and fills its own files of
// one item. Without it, one thread inflates torch's wheel while all others have nothing left to do.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "installer/store/unpack_entry.hpp"
#include "installer/store/unpack_wheel.hpp"

namespace sealift::installer {

class SharedWheel {
 public:
  // Opens the wheel, claims all places below the new folder `folder` and announces each part to the payload. Whoever
  // has announced the entry leaves it here: from now on only its parts are expected.
  SharedWheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, const std::filesystem::path& folder,
              Disk& disk, bundle::Progress& progress);

  const bundle::Entry& entry() const { return entry_; }
  const std::vector<ClaimedWheel::Part>& parts() const { return parts_; }
  // The two below are safe from several threads. Each part is unpacked once.
  void unpack(const ClaimedWheel::Part& part) const;
  // Called after each part; true for the last of them.
  bool is_last() { return ++done_ == parts_.size(); }

  // Writes the rest and the record; the item is complete then. Called once, last.
  Unpacked finish();

 private:
  const bundle::VerifiedBundle& bundle_;
  const bundle::Entry& entry_;
  ItemWriter writer_;
  std::unique_ptr<bundle::ByteSource> source_;  // until the parts are announced
  ClaimedWheel wheel_;
  std::vector<ClaimedWheel::Part> parts_;
  std::atomic<std::size_t> done_{0};
};

}  // namespace sealift::installer
