// SPDX-License-Identifier: Apache-2.0
// What a prefix holds, as a file to carry out: the installer writes it, the packer of a delta leaves those items out.
// It comes from the isolated side, so the packer takes nothing in it on trust: a false one makes a delta that the
// installer refuses, and nothing worse. Its digest is a check against damage, and names it in the delta's manifest.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kInventoryFormat = 2;                     // 1 named items by other digests
inline constexpr std::size_t kMaxInventorySize = std::size_t{64} << 20;  // some 900,000 items
inline constexpr std::size_t kMaxInventoryGenerations = 10'000;

// The name of what an entry becomes in a store: its content, with a suffix unless it is a wheel, since the same bytes
// as a tree, a file or a program give different items.
std::string store_item_name(const Entry& entry);
// True for the texts that store_item_name makes.
bool is_store_item_name(std::string_view name);

struct Inventory {
  struct Installed {
    std::string name;
    std::string channel;
    std::uint64_t version = 0;
    Digest identity;  // of the bundle

    auto operator<=>(const Installed&) const = default;
  };

  std::set<Installed> generations;
  std::set<std::string> items;  // names in the store

  bool has(const Entry& entry) const { return items.contains(store_item_name(entry)); }
  bool operator==(const Inventory&) const = default;
};

// Of the values, however they are spaced.
Digest inventory_digest(const Inventory& inventory);

// One item a line, so that the person who lets it out can read it. Deterministic: the same store gives the same bytes.
std::string write_inventory(const Inventory& inventory);

// Throws Format, CannotCheck for another format, Digest when a value was changed.
Inventory parse_inventory(std::string_view text, const std::string& where);

}  // namespace sealift::bundle
