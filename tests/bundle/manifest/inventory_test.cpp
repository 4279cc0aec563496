// SPDX-License-Identifier: Apache-2.0
// Inventories read back as they were written; each rule has one that breaks only that rule.
#include "sealift/bundle/manifest/inventory.hpp"

#include <doctest/doctest.h>

#include "bundle/core/json.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

Inventory sample_inventory() {
  return {.generations = {{.name = "env", .channel = "prod", .version = 2, .identity = sha256({})},
                          {.name = "env", .channel = "prod", .version = 1, .identity = sha256(as_bytes("x"))}},
          .items = {std::string(64, 'a'), std::string(64, 'b') + "-tree", std::string(64, 'b') + "-program"}};
}

Entry entry_of(EntryKind kind, bool executable = false) {
  Entry entry;
  entry.kind = kind;
  entry.executable = executable;
  return entry;
}

}  // namespace

TEST_CASE("an inventory reads back as it was written, one item a line, and its digest is of the values") {
  const std::string text = write_inventory(sample_inventory());
  CHECK(parse_inventory(text, "site.json") == sample_inventory());
  CHECK(text.find("\n  \"" + std::string(64, 'b') + "-tree\"") != text.npos);
  CHECK(write_inventory(sample_inventory()) == text);
  CHECK(parse_inventory(Json::parse(text).dump(), "respaced") == sample_inventory());
  CHECK(parse_inventory(Json::parse(text).dump(4), "respaced") == sample_inventory());
  Inventory other = sample_inventory();
  other.items.erase(other.items.begin());
  CHECK(inventory_digest(other) != inventory_digest(sample_inventory()));
  CHECK(parse_inventory(write_inventory({}), "an empty store") == Inventory{});
}

TEST_CASE("one digest as a wheel, a tree, a file and a program is four items") {
  const std::string zeros(64, '0');
  CHECK(store_item_name(entry_of(EntryKind::Wheel)) == zeros);
  CHECK(store_item_name(entry_of(EntryKind::Tree)) == zeros + "-tree");
  CHECK(store_item_name(entry_of(EntryKind::File)) == zeros + "-file");
  CHECK(store_item_name(entry_of(EntryKind::File, true)) == zeros + "-program");
  const Inventory inventory{.generations = {}, .items = {zeros + "-file"}};
  CHECK(inventory.has(entry_of(EntryKind::File)));
  CHECK_FALSE(inventory.has(entry_of(EntryKind::File, true)));
  CHECK_FALSE(inventory.has(entry_of(EntryKind::Wheel)));
  for (const std::string& bad : {std::string(), std::string(63, '0'), zeros + "-", zeros + "0", zeros + "-Tree",
                                 std::string(64, 'A'), zeros + "-tree/..", "../" + zeros})
    CHECK_FALSE(is_store_item_name(bad));
}

TEST_CASE("an inventory with one fault is refused for it") {
  struct Case {
    const char* pointer;
    Json value;
    ErrorCode code;
    const char* word;
  };
  const Json generation = {{"name", "env"}, {"channel", "prod"}, {"version", 1}, {"identity", std::string(64, '0')}};
  Json escaping = generation, more = generation;
  escaping["name"] = "../env";
  more["host"] = "node1";
  const Case cases[] = {
      {"/format", 3, ErrorCode::CannotCheck, "format"},
      {"/format", 1, ErrorCode::CannotCheck, "format"},
      {"/surprise", 1, ErrorCode::Format, "surprise"},
      {"/items", "all", ErrorCode::Format, "array"},
      {"/items/0", "../../etc/passwd", ErrorCode::Format, "name of a store item"},
      {"/items/0", std::string(64, 'A'), ErrorCode::Format, "name of a store item"},
      {"/items/0", 7, ErrorCode::Format, "name of a store item"},
      {"/items/0", std::string(64, 'b') + "-tree", ErrorCode::Format, "stands twice"},
      {"/generations/0", escaping, ErrorCode::Format, "plain name"},
      {"/generations/0", more, ErrorCode::Format, "host"},
      {"/generations", Json::array({generation, generation}), ErrorCode::Format, "stands twice"},
      {"/generations/0/version", -1, ErrorCode::Format, "version"},
      {"/generations/0/version", 9, ErrorCode::Digest, "changed on its way"},
      {"/items", Json::array(), ErrorCode::Digest, "changed on its way"},
      {"/sha256", std::string(64, '0'), ErrorCode::Digest, "changed on its way"},
      {"/sha256", "0", ErrorCode::Format, "SHA-256"},
  };
  for (const Case& wrong : cases) {
    CAPTURE(std::string(wrong.pointer));
    Json json = Json::parse(write_inventory(sample_inventory()));
    json[Json::json_pointer(wrong.pointer)] = wrong.value;
    const Error error = sealift::test::refusal([&] { parse_inventory(json.dump(), "site.json"); });
    INFO(error.what());
    CHECK(error.code() == wrong.code);
    CHECK(sealift::test::mentions(error, wrong.word));
    CHECK(sealift::test::mentions(error, "site.json"));
  }
  for (const char* text : {"", "{", "[]", "null", "{\"format\":2}", "{\"format\":2.0}"})
    CHECK_REFUSED(parse_inventory(text, "site.json"), Format, "site.json");
}

TEST_CASE("every key of an inventory is needed") {
  const Json good = Json::parse(write_inventory(sample_inventory()));
  for (const auto& item : good.items()) {
    Json json = good;
    json.erase(item.key());
    CHECK_REFUSED(parse_inventory(json.dump(), "site.json"), Format, "'" + item.key() + "' is missing");
  }
}
