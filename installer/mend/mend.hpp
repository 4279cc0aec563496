// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install mend`: what is right on a damaged medium, and what recovery data gives back, becomes
// whole volumes in another folder, since discs cannot be written. The folder gets its name when every byte in it has
// its signed digest and is durable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "installer/disk/disk.hpp"
#include "sealift/bundle/damaged_payload.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct Mended {
  std::string name;
  std::uint64_t version = 0;
  bundle::Digest identity;
  std::vector<std::string> warnings;
  bundle::Damage damage;
  std::filesystem::path folder;      // NAME-VERSION in `into`; empty: every volume was whole, and nothing was written
  std::vector<std::string> volumes;  // that lie there now, in order
  std::uint64_t bytes = 0;           // of those
};

// Writes the volumes that have a fault, with seal, lists and companions beside them, into the new folder
// `into`/NAME-VERSION; the others stay where they are. Throws what bundle::verify throws but for volumes, Digest when
// more is lost than can be mended, Conflict when the folder exists, Space. Memory: below 256 MiB.
Mended mend(bundle::OpenBundle opened, const std::filesystem::path& into, const bundle::Trust& trust, bundle::Time now,
            unsigned threads, Disk& disk, bundle::Progress& progress);

}  // namespace sealift::installer
