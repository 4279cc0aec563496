// SPDX-License-Identifier: Apache-2.0
// When a bundle was checked last as it lies here: by verification, and by a scrub that read all of it.
// Beside a bundle's contents; who checks notes it, and pages for people show it.
// Time goes on while views never change, so it is read when a page is made.
#pragma once

#include <mutex>
#include <string>

#include "sealift/bundle/core/time.hpp"

namespace sealift::offline_repo {

// Safe from several threads.
class LastCheck {
 public:
  // RFC 3339, UTC; empty: not since this program began.
  struct Times {
    std::string verified;  // seal, chunk list, sizes
    std::string read;      // each byte of the payload: when the last of them was found right
  };

  void note_verified(bundle::Time now = bundle::system_time()) { note(times_.verified, now); }
  void note_read(bundle::Time now = bundle::system_time()) { note(times_.read, now); }
  Times times() const {
    const std::lock_guard lock(guard_);
    return times_;
  }

 private:
  void note(std::string& time, bundle::Time now) {
    const std::lock_guard lock(guard_);
    time = bundle::write_time(now);
  }

  mutable std::mutex guard_;
  Times times_;
};

}  // namespace sealift::offline_repo
