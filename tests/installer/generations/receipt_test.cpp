// SPDX-License-Identifier: Apache-2.0
// The receipt: the same from the record at any time, complete, and fit to be signed with stock tools.
#include "installer/generations/receipt.hpp"

#include "installer/upkeep/switch.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

TEST_CASE("an installation leaves a receipt that says who signed, what, what was checked, where and when") {
  Site site;
  site.machine.locale = "zh_CN.GBK";
  const Applied applied = site.apply(site.make({}));
  const fs::path path = site.prefix().receipts() / "0001-tiny-1.json";
  const bundle::Json json = bundle::parse_json(read_file(path), "receipt");
  CHECK(json["identity"] == applied.identity.hex());
  CHECK(json["signers"][0] == site.key.public_key().id().hex());
  CHECK(json["host"].get<std::string>().size() > 0);
  CHECK(json["installed"] == applied.record->installed);
  CHECK(json["audit"]["wheels"] == 1);
  CHECK(json["self_test"]["steps"].size() == 2);
  CHECK(json["entries"][0]["path"] == "wheels/demo-1.0-py3-none-any.whl");
  bool warned = false;
  for (const bundle::Json& line : json["preflight"])
    warned = warned || line.get<std::string>().find("zh_CN.GBK") != std::string::npos;
  CHECK(warned);
  const std::string page = read_file(site.prefix().receipts() / "0001-tiny-1.txt");
  for (const std::string& part :
       {std::string("tiny version 1, channel test"), "sha256:" + applied.identity.hex(), std::string("generation 1"),
        "sha256:" + site.key.public_key().id().hex(), std::string("1 wheels"),
        std::string("all-reduce of two ranks: not run"),
        "sha256:" + bundle::sha256(bundle::as_bytes(read_file(path))).hex(), std::string("zh_CN.GBK")})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
}

TEST_CASE("the receipt is made again from the record, byte for byte, for the current or a named generation") {
  const Site site;
  site.apply(site.make({}));
  site.apply(site.make({.version = 2}, "bundle2"));
  const std::string first = read_file(site.prefix().receipts() / "0001-tiny-1.json");
  const std::string second = read_file(site.prefix().receipts() / "0002-tiny-2.json");
  CHECK(receipt_of(record_for_receipt(site.prefix(), 0)) == second);
  CHECK(receipt_of(record_for_receipt(site.prefix(), 1)) == first);
  CHECK_REFUSED(record_for_receipt(site.prefix(), 3), Missing, "no such generation");
  CHECK_REFUSED(record_for_receipt(Prefix(site.dir / "nothing"), 0), Missing, "there is no prefix here");
  std::filesystem::create_directories(site.dir / "trusted/trust");
  CHECK_REFUSED(record_for_receipt(Prefix(site.dir / "trusted"), 0), Missing, "none is current");
  Disk disk;
  switch_to(site.prefix(), 1, disk);
  CHECK(receipt_of(record_for_receipt(site.prefix(), 0)) == first);
}

TEST_CASE("a record of an older version, without host and warnings, still gives a receipt") {
  const Site site;
  const Applied applied = site.apply(site.make({}));
  bundle::Json json = bundle::parse_json(write_generation_record(*applied.record), "record");
  json.erase("host");
  json.erase("preflight");
  json["self_test"].erase("steps");
  const fs::path folder = site.dir / "old";
  write_file(folder / "generation.json", bundle::write_json(json) + "\n");
  const GenerationRecord old = read_generation_record(folder, 1);
  CHECK(receipt_page(old).find("not recorded") != std::string::npos);
}

TEST_CASE("what a power cut left of the small files is put right by the run that finishes the work") {
  const Site site;
  Disk disk;
  site.apply(site.make({}));
  const MadeBundle made = site.make({.version = 2}, "bundle2");
  site.apply(made);
  const fs::path receipt = site.prefix().receipts() / "0002-tiny-2.json";
  const std::string text = read_file(receipt);
  switch_to(site.prefix(), 1, disk);  // as if killed before the switch to the second
  for (const fs::path& torn : {receipt, site.prefix().folder() / "activate"}) {
    fs::permissions(torn, fs::perms(0644));
    write_file(torn, std::string(read_file(torn).size(), '\0'));
  }
  fs::remove(site.prefix().folder() / "activate.csh");
  CHECK(site.apply(made).action == InstallPlan::Action::SwitchTo);
  CHECK(read_file(receipt) == text);
  CHECK(read_file(site.prefix().folder() / "activate").find("sealift_deactivate") != std::string::npos);
  CHECK(fs::exists(site.prefix().folder() / "activate.csh"));
}
