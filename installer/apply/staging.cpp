// SPDX-License-Identifier: Apache-2.0
// The folder is named after the process. Cleaning up never throws: what it cannot remove, the next run's sweep does.
#include "installer/apply/staging.hpp"

#include <unistd.h>

#include "installer/store/store.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

Staging::Staging(const Prefix& prefix, Disk& disk)
    : prefix_(prefix), disk_(disk), folder_(prefix.staging() / std::to_string(::getpid())) {
  disk_.make_folder(prefix.staging());
  disk_.make_folder(prefix.staged_items());
  disk_.make_folder(folder_);
}

Staging::~Staging() {
  try {
    const fs::path items = prefix_.staged_items();
    if (done_ && !fs::is_empty(items)) discard(items, folder_ / "items", disk_);
    sweep(prefix_, disk_);
  } catch (const std::exception&) {
  }
}

}  // namespace sealift::installer
