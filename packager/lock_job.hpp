// SPDX-License-Identifier: Apache-2.0
// `sealift-pack lock`: job -> resolve -> choose wheels -> gather the interpreter -> check floors -> lock file.
#pragma once

#include <filesystem>

#include "packager/host/sandbox.hpp"
#include "packager/lock/lock.hpp"
#include "packager/python/offline_breakers.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

struct LockOptions {
  std::filesystem::path job;
  std::filesystem::path out;                 // empty: NAME.lock.toml beside the job file
  std::filesystem::path cache;               // empty: the default
  std::filesystem::path uv;                  // empty: $SEALIFT_UV, then PATH
  std::filesystem::path patchelf;            // empty: PATH
  std::filesystem::path launcher;            // empty: the sealift-start beside the running program
  Isolation isolation = Isolation::Sandbox;  // of what is built
};

struct LockResult {
  std::filesystem::path file;
  Lock lock;
  std::vector<OfflineFinding> findings;  // packages that expect a network, and who needs them
};

// Writes the lock file, and beside it uv's own pylock.NAME.toml as evidence; the interpreter's tar goes into the cache.
LockResult lock_job(const LockOptions& options, bundle::Progress& progress);

}  // namespace sealift::packager
