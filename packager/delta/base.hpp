// SPDX-License-Identifier: Apache-2.0
// What a delta is made for: the inventory of a target, or the bundle that was sent last, of which more is known.
// Read once and passed on as a value: `delta` leaves out what it has, `patches` builds on its wheels.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packager/pack/pack_plan.hpp"
#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/trust/envelope.hpp"

namespace sealift::packager {

// At most 64 MiB are read. Throws as bundle::parse_inventory does.
bundle::Inventory read_inventory(const std::filesystem::path& file);

// What the store of a prefix holds that has installed this bundle and nothing else, equal to what `sealift-install
// inventory` prints there. Reads seal and chunk list, no volume. `root`: the fingerprint by which the bundle is
// verified; throws as bundle::verify does.
bundle::Inventory inventory_of_bundle(const std::filesystem::path& folder_or_seal, const bundle::Digest& root);

// A wheel of the bundle that was sent last: which one it is, and what names it in a store that has installed it.
struct SentWheel {
  std::string file_name;
  bundle::Digest sha256;
  bundle::Digest content;
};

// What a delta is made for. Of an inventory only the names are known.
struct Base {
  bundle::Inventory inventory;
  struct Sent {
    std::map<std::string, SentWheel> wheels;  // by normalized project name
    std::set<bundle::Digest> startup_files;   // that its wheels may have
    bundle::Payload payload;
  };
  std::optional<Sent> sent = {};  // of a bundle
};

// `base` is an inventory's file, or a bundle's folder or seal, verified from the oldest of `roots` on.
Base read_base(const std::filesystem::path& base, const std::vector<bundle::Envelope>& roots);

// The wheel of this entry's project in the bundle that was sent; nullptr when there is none, or no bundle.
const SentWheel* sent_version_of(const PlannedEntry& entry, const Base& base);

}  // namespace sealift::packager
