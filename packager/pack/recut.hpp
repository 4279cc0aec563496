// SPDX-License-Identifier: Apache-2.0
// `sealift-pack recut`: the same payload in volumes of another size, without packing again. The cut is part of the
// signed manifest, so the result is signed anew; everything else of the manifest stays as it was.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/keys/sign.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

struct RecutOptions {
  std::filesystem::path bundle;
  bundle::Digest fingerprint;               // of the root by which the bundle is verified before it is signed again
  std::vector<std::filesystem::path> keys;  // private keys that sign
  std::string passphrase;                   // of entries with one
  std::filesystem::path out;                // the folder that gets NAME-VERSION/
  std::uint64_t volume_size = 0;            // bytes; 0: one volume
};

struct RecutResult {
  std::filesystem::path folder;
  bundle::Manifest manifest;
  std::vector<RoleStatus> roles;
};

// Every chunk is checked on its way. Throws what bundle::verify throws; Usage for a key without a role; Conflict when
// the result exists already.
RecutResult recut(const RecutOptions& options, bundle::Progress& progress);

}  // namespace sealift::packager
