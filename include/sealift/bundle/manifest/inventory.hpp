// SPDX-License-Identifier: Apache-2.0
// What a prefix holds, as a file to carry out: the installer writes it, the packer of a delta leaves those items out.
// It comes from the isolated side, so the packer takes nothing in it on trust: a false one makes a delta that the
// installer refuses, and nothing worse. Its digest is a check against damage, and names it in the delta's manifest.
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kInventoryFormat = 1;
inline constexpr std::size_t kMaxInventorySize = std::size_t{64} << 20;  // some 900,000 items
inline constexpr std::size_t kMaxInventoryGenerations = 10'000;

// The name of what an entry becomes in a store: its digest, with a suffix for what is no wheel, since the same bytes
// as a tree, a file or a program give different items.
inline std::string store_item_name(const Entry& entry) {
  const char* suffix = entry.kind == EntryKind::Wheel  ? ""
                       : entry.kind == EntryKind::Tree ? "-tree"
                       : entry.executable              ? "-program"
                                                       : "-file";
  return entry.sha256.hex() + suffix;
}

inline bool is_store_item_name(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kSuffixes = {"", "-tree", "-program", "-file"};
  constexpr std::size_t kDigits = 2 * Digest::kSize;
  return name.size() >= kDigits && Digest::from_hex(name.substr(0, kDigits)) &&
         std::find(kSuffixes.begin(), kSuffixes.end(), name.substr(kDigits)) != kSuffixes.end();
}

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

namespace detail {

inline Json inventory_json(const Inventory& inventory) {
  Json generations = Json::array();
  for (const Inventory::Installed& one : inventory.generations)
    generations.push_back(
        {{"name", one.name}, {"channel", one.channel}, {"version", one.version}, {"identity", one.identity.hex()}});
  return {{"format", kInventoryFormat}, {"generations", std::move(generations)}, {"items", inventory.items}};
}

}  // namespace detail

// Of the values, however they are spaced.
inline Digest inventory_digest(const Inventory& inventory) {
  return sha256(as_bytes(write_json(detail::inventory_json(inventory))));
}

// One item a line, so that whoever lets it out can read it. Deterministic: the same store gives the same bytes.
inline std::string write_inventory(const Inventory& inventory) {
  Json json = detail::inventory_json(inventory);
  json["sha256"] = inventory_digest(inventory).hex();
  return json.dump(1) + "\n";
}

// Throws Format, CannotCheck for another format, Digest when a value was changed.
inline Inventory parse_inventory(std::string_view text, const std::string& where) {
  const Json root = parse_json(text, where);
  JsonObject object(root, where);
  if (const std::uint64_t format = object.integer("format"); format != kInventoryFormat)
    throw Error(ErrorCode::CannotCheck, {.what = "the inventory is of a format that this version does not know",
                                         .where = where,
                                         .expected = std::to_string(kInventoryFormat),
                                         .got = std::to_string(format),
                                         .next = "use the sealift-pack that belongs to the site's sealift-install"});
  Inventory inventory;
  for (const Json& json : object.array("generations", kMaxInventoryGenerations)) {
    JsonObject item(json, where + ".generations");
    const Inventory::Installed one{.name = detail::plain_name(item, "name"),
                                   .channel = detail::plain_name(item, "channel"),
                                   .version = item.integer("version"),
                                   .identity = item.digest("identity")};
    item.done();
    if (!inventory.generations.insert(one).second)
      detail::refuse_json(item.where(), "a generation stands twice", one.name);
  }
  for (const Json& json : object.array("items", kMaxJsonValues)) {
    const std::string name = json.is_string() ? json.get<std::string>() : "";
    if (!is_store_item_name(name))
      detail::refuse_json(where + ".items", "the name of a store item was expected", json.dump().substr(0, 80));
    if (!inventory.items.insert(name).second) detail::refuse_json(where + ".items", "an item stands twice", name);
  }
  const Digest check = object.digest("sha256");
  object.done();
  if (const Digest digest = inventory_digest(inventory); digest != check)
    throw Error(ErrorCode::Digest, {.what = "the inventory was changed on its way",
                                    .where = where,
                                    .expected = "sha256 " + check.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "take it again: sealift-install inventory --prefix PREFIX"});
  return inventory;
}

}  // namespace sealift::bundle
