// SPDX-License-Identifier: Apache-2.0
// The small parts by themselves: records, progress figures, the real disk.
#include "installer/print/report.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

TEST_CASE("an item's record is read back as it was written") {
  const TempDir dir;
  ItemRecord record{.kind = bundle::EntryKind::Tree, .name = "t.tar", .sha256 = bundle::sha256({}), .dist_info = ""};
  record.files = {{.path = "tree/a", .size = 3, .sha256 = bundle::sha256(bundle::as_bytes("abc")), .executable = true}};
  record.folders = {"tree"};
  record.links = {{.path = "tree/l", .target = "a"}};
  write_file(dir / "record.json", write_item_record(record));
  CHECK(read_item_record(dir / "record.json") == record);
  write_file(dir / "bad.json", R"({"format":1,"kind":"tree","name":"x","sha256":")" + std::string(64, '0') +
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
  newer.replace(newer.find(R"("format":1)"), 10, R"("format":2)");
  newer.replace(newer.find(R"("size":3)"), 8, R"("bytes":3)");
  CHECK_REFUSED(parse_item_record(newer, "a record"), CannotCheck, "does not know");
}

TEST_CASE("sizes are printed as people say them") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(1000) == "1.0 kB");
  CHECK(human_bytes(4'700'000'000) == "4.7 GB");
}

TEST_CASE("the disk never follows a link or overwrites a file, and names what stands in a folder's place") {
  const TempDir dir;
  Disk disk;
  write_file(dir / "file", "old");
  fs::create_symlink("file", dir / "link");
  CHECK_REFUSED(disk.create(dir / "file", 0444), Io, "file");
  CHECK_REFUSED(disk.create(dir / "link", 0444), Io, "link");
  CHECK_REFUSED(disk.make_folder(dir / "file"), Conflict, "file");
  CHECK(read_file(dir / "file") == "old");
  disk.make_folders(dir / "a/b/c");
  write_file(dir / "a/b/c/x", "x");
  disk.make_folder(dir / "empty");
  CHECK_REFUSED(disk.rename(dir / "empty", dir / "a"), Conflict, "/a");
  fs::create_directory_symlink(dir / "a", dir / "a/loop");
  disk.remove_tree(dir / "a/loop");
  CHECK(fs::exists(dir / "a/b/c/x"));
  CHECK(disk.free_space(dir / "not/there/yet").bytes == disk.free_space(dir.path()).bytes);
}

TEST_CASE("a prefix is absolute and has no slash at its end") {
  CHECK(Prefix("/opt/x/").folder() == "/opt/x");
  CHECK(Prefix("/opt/x/../y").folder() == "/opt/y");
  CHECK(Prefix("rel").folder().is_absolute());
  CHECK(Prefix("/opt/x").generation(12).filename() == "0012");
}

TEST_CASE("errors as JSON carry code, exit code and the facts that are there") {
  const bundle::Json json = json_of(bundle::Error(bundle::ErrorCode::Space, {.what = "full", .where = "/p"}));
  CHECK(bundle::write_json(json) == R"({"code":"space","exit":9,"what":"full","where":"/p"})");
}
