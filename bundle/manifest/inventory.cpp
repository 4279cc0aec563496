// SPDX-License-Identifier: Apache-2.0
// Names what a store holds, and reads and writes the list of it; see inventory.hpp.
#include "sealift/bundle/manifest/inventory.hpp"

#include <algorithm>
#include <array>

#include "bundle/core/fields_json.hpp"
#include "bundle/core/json.hpp"

namespace sealift::bundle {

std::string store_item_name(const Entry& entry) {
  const char* suffix = entry.kind == EntryKind::Wheel  ? ""
                       : entry.kind == EntryKind::Tree ? "-tree"
                       : entry.executable              ? "-program"
                                                       : "-file";
  return entry.content.hex() + suffix;
}

bool is_store_item_name(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kSuffixes = {"", "-tree", "-program", "-file"};
  constexpr std::size_t kDigits = 2 * Digest::kSize;
  return name.size() >= kDigits && Digest::from_hex(name.substr(0, kDigits)) &&
         std::find(kSuffixes.begin(), kSuffixes.end(), name.substr(kDigits)) != kSuffixes.end();
}

namespace {

Json inventory_json(const Inventory& inventory) {
  Json generations = Json::array();
  for (const Inventory::Installed& one : inventory.generations)
    generations.push_back(
        {{"name", one.name}, {"channel", one.channel}, {"version", one.version}, {"identity", one.identity.hex()}});
  return {{"format", kInventoryFormat}, {"generations", std::move(generations)}, {"items", inventory.items}};
}

}  // namespace

Digest inventory_digest(const Inventory& inventory) {
  return sha256(as_bytes(write_json(inventory_json(inventory))));
}

std::string write_inventory(const Inventory& inventory) {
  Json json = inventory_json(inventory);
  json["sha256"] = inventory_digest(inventory).hex();
  return json.dump(1) + "\n";
}

Inventory parse_inventory(std::string_view text, const std::string& where) {
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
    const Inventory::Installed one{.name = plain_name(item, "name"),
                                   .channel = plain_name(item, "channel"),
                                   .version = item.integer("version"),
                                   .identity = item.digest("identity")};
    item.done();
    if (!inventory.generations.insert(one).second) refuse_json(item.where(), "a generation stands twice", one.name);
  }
  for (const Json& json : object.array("items", kMaxJsonValues)) {
    const std::string name = json.is_string() ? json.get<std::string>() : "";
    if (!is_store_item_name(name))
      refuse_json(where + ".items", "the name of a store item was expected", json.dump().substr(0, 80));
    if (!inventory.items.insert(name).second) refuse_json(where + ".items", "an item stands twice", name);
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
