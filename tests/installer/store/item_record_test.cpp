// SPDX-License-Identifier: Apache-2.0
// The record of a store item: written, read back, and refused where a disk has damaged it.
#include "installer/store/item_record.hpp"

#include "installer/store/packed_record.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

TEST_CASE("an item's record is read back as it was written") {
  const TempDir dir;
  ItemRecord record{.kind = bundle::EntryKind::Tree, .name = "t.tar", .content = bundle::sha256({}), .dist_info = ""};
  record.files = {{.path = "tree/a", .size = 3, .sha256 = bundle::sha256(bundle::as_bytes("abc")), .executable = true}};
  record.folders = {"tree"};
  record.links = {{.path = "tree/l", .target = "a"}};
  write_file(dir / "record.json", write_item_record(record));
  CHECK(read_item_record(dir / "record.json") == record);
  write_file(dir / "bad.json", R"({"format":2,"kind":"tree","name":"x","content":")" + std::string(64, '0') +
                                   R"(","dist_info":"","files":[],"folders":["../x"],"links":[]})");
  CHECK_REFUSED(read_item_record(dir / "bad.json"), Format, "../x");
  const auto parse_with = [&record](const std::string& from, const std::string& to) {
    std::string text = write_item_record(record);
    text.replace(text.find(from), from.size(), to);
    return parse_item_record(text, "a record");
  };
  CHECK_REFUSED(parse_with(R"("size":3)", R"("size":-3)"), Format, "a record.files.size");
  CHECK_REFUSED(parse_with(R"("size":3)", R"("size":3,"new":1)"), Format, "'new'");
  CHECK_REFUSED(parse_with(R"("links":[{)", R"("links":[7,{)"), Format, "a record.links");
  CHECK_REFUSED(parse_with(R"("files":[)", R"("other":[1],"files":[)"), Format, "'other'");
  CHECK_REFUSED(parse_with(R"("folders":["tree"])", R"("folders":{})"), Format, "an array was expected");
  // Of another version's record only that is said, whatever its files look like.
  std::string newer = write_item_record(record);
  newer.replace(newer.find(R"("format":2)"), 10, R"("format":3)");
  newer.replace(newer.find(R"("size":3)"), 8, R"("bytes":3)");
  CHECK_REFUSED(parse_item_record(newer, "a record"), CannotCheck, "does not know");
  newer.replace(newer.find(R"("format":3)"), 10, R"("format":1)");
  CHECK_REFUSED(parse_item_record(newer, "a record"), CannotCheck, "install into a new prefix");
}

TEST_CASE("a record of another format's number, also of one whose low bits are ours, is not read") {
  const std::string text = write_item_record({.name = "t.tar"});
  for (const char* number :
       {"0", "2147483648", "4294967298", "9007199254740993", "18446744073709551618", "-2", "2.0"}) {
    std::string other = text;
    other.replace(other.find(R"("format":2)"), 10, std::string(R"("format":)") + number);
    INFO(number);
    const bundle::Error error = refusal([&] { parse_item_record(other, "a record"); });
    CHECK((error.code() == bundle::ErrorCode::CannotCheck || error.code() == bundle::ErrorCode::Format));
  }
}

TEST_CASE("a record that stamps keep comes back whole or not at all") {
  ItemRecord record{.kind = bundle::EntryKind::Tree, .name = "t.tar", .content = bundle::sha256({}), .dist_info = "d"};
  record.files = {{.path = "tree/a", .size = 3, .sha256 = bundle::sha256(bundle::as_bytes("abc")), .executable = true},
                  {.path = "tree/b", .size = ~std::uint64_t{0}, .sha256 = {}}};
  record.folders = {"tree", "tree/sub"};
  record.links = {{.path = "tree/l", .target = "../a"}};
  const std::string packed = pack_record(record);
  CHECK(unpack_record(packed) == record);
  CHECK(unpack_record(pack_record({})) == ItemRecord{});
  for (std::size_t size = 0; size < packed.size(); ++size) CHECK_FALSE(unpack_record(packed.substr(0, size)));
  CHECK_FALSE(unpack_record(packed + "x"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string other = packed;
    return other.replace(other.find(from), from.size(), to);
  };
  CHECK_FALSE(unpack_record(with("tree/sub", "tree/../")));
  CHECK_FALSE(unpack_record(with("tree/b", "/ree/b")));
  CHECK_FALSE(unpack_record("\x07" + packed.substr(1)));
  const std::size_t count = sizeof(record.kind) + 8 + record.name.size() + 32 + 8 + record.dist_info.size();
  REQUIRE(packed[count] == 2);
  CHECK_FALSE(unpack_record(packed.substr(0, count) + std::string(8, '\xff') + packed.substr(count + 8)));  // files
}
