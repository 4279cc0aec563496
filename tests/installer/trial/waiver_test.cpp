// SPDX-License-Identifier: Apache-2.0
// A native file that does not load may be waived by name, with a reason that stays; nothing else may, and no waiver
// goes unused without a word. The files are made by the host's compiler; skipped without it and python3.
#include "bundle/host/waiver.hpp"

#include "installer/generations/receipt.hpp"
#include "installer/print/status_report.hpp"
#include "tests/installer/made_libraries.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

constexpr const char* kBroken = "lib/python3.11/site-packages/x.cpython-311.so";
constexpr const char* kReason = "nothing here calls x = y, ticket 4711";

// An extension module that misses a library, and one that is good.
TinyBundle with_broken_module(const LibraryShop& shop) {
  shop.library("libgone.so.7", "int gone(void) { return 0; }");
  const std::string broken = shop.library("x.so", "int gone(void); int x(void) { return gone(); }", {"libgone.so.7"});
  const std::string good = shop.library("libgood.so", "int good(void) { return 1; }");
  return bundle_with({{kBroken, broken}, {"lib/libgood.so", good}});
}

ApplyOptions waiving(const HostSite& site, const MadeBundle& made, std::vector<bundle::Waiver> waivers) {
  ApplyOptions options = site.options(made);
  options.waivers = std::move(waivers);
  return options;
}

}  // namespace

TEST_CASE("a file that does not load is refused with the option that would waive it") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  const HostSite site;
  const bundle::Error error = refusal([&] { site.apply(site.make(with_broken_module(shop))); });
  CHECK(error.code() == bundle::ErrorCode::SelfTest);
  CHECK(mentions(error, std::string("1 of 2 do not load: ") + kBroken));
  CHECK(mentions(error, "apply --waive 'PATH=REASON'"));
}

TEST_CASE("a waived file is tried, its fault and the reason are in the record, the receipt, status and the report") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  const HostSite site;
  const MadeBundle made = site.make(with_broken_module(shop));
  const ApplyOptions options = waiving(site, made, {{kBroken, kReason}, {"lib/libgood.so", "may be old"}});
  const Applied applied = site.apply(options);
  const SelfCheck& check = applied.record->self_check;
  REQUIRE(check.waived.size() == 1);
  CHECK(check.waived[0].path == kBroken);
  CHECK(check.waived[0].fault.find("libgone.so.7: cannot open shared object file") != std::string::npos);
  CHECK(check.waived[0].reason == kReason);
  CHECK(check.steps.at(0).detail == "1 of 2 libraries and programs load; waivers that were not needed: lib/libgood.so");

  const GenerationRecord record = read_generation_record(site.current(), 1);
  CHECK(record.self_check.waived == check.waived);
  const bundle::Json receipt = bundle::parse_json(receipt_of(record), "receipt");
  CHECK(receipt["self_test"]["waived"][0]["path"] == kBroken);
  CHECK(receipt["self_test"]["waived"][0]["reason"] == kReason);
  const std::string line = std::string("waived: ") + kBroken + " does not load (libgone.so.7";
  CHECK(receipt_page(record).find(line) != std::string::npos);
  CHECK(receipt_page(record).find(std::string("reason: ") + kReason) != std::string::npos);
  CHECK(text_of(status_of(site.prefix())).find(line) != std::string::npos);
  CHECK(json_of(status_of(site.prefix()))["generations"][0]["self_test"]["waived"].size() == 1);
}

TEST_CASE("a waiver is for one file: another that does not load is refused beside it") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  const HostSite site;
  TinyBundle tiny = with_broken_module(shop);
  const std::string second = shop.library("y.so", "int gone(void); int y(void) { return gone(); }", {"libgone.so.7"});
  tiny.items.push_back(wheel_item({.name = "second", .files = {{"y.cpython-311.so", second}}}));
  const MadeBundle made = site.make(tiny);
  const std::string other = "lib/python3.11/site-packages/y.cpython-311.so";
  const bundle::Error error = refusal([&] { site.apply(waiving(site, made, {{kBroken, kReason}})); });
  CHECK(error.code() == bundle::ErrorCode::SelfTest);
  CHECK(mentions(error, "1 of 3 do not load: " + other));
  CHECK_REFUSED(site.apply(waiving(site, made, {{other, kReason}})), SelfTest,
                "1 of 3 do not load: " + std::string(kBroken));
}

TEST_CASE("a waiver that names no native file is refused, and what was built is not called a failure") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  const HostSite site;
  TinyBundle tiny = with_broken_module(shop);
  tiny.items.push_back(wheel_item({.name = "text", .files = {{"text.py", "x = 1\n"}}}));
  const MadeBundle made = site.make(tiny);
  for (const char* path : {"lib/libgone.so.7", "lib/python3.11/site-packages/text.py", "x.cpython-311.so"}) {
    CAPTURE(path);
    CHECK_REFUSED(site.apply(waiving(site, made, {{path, kReason}})), Usage, "names no native file of this bundle");
    CHECK_FALSE(fs::exists(site.current()));
    CHECK_FALSE(fs::exists(site.prefix().failed()));
  }
  ApplyOptions imports = waiving(site, made, {{kBroken, kReason}});
  imports.self_check = SelfCheckOptions::Depth::Imports;
  CHECK_REFUSED(site.apply(imports), Usage, "--self-test imports tries no native file");
}

TEST_CASE("no waiver lets a changed byte or another signer through, whatever it names") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  const HostSite site;
  const MadeBundle made = site.make(with_broken_module(shop));
  const std::string volume = made.folder / made.manifest.payload.volumes.at(0).name;
  const std::vector<bundle::Waiver> waivers = {
      {kBroken, kReason}, {"lib/libgood.so", kReason}, {fs::path(volume).filename().string(), kReason}};
  ApplyOptions other = waiving(site, made, waivers);
  other.fingerprint = bundle::sha256({});
  CHECK_REFUSED(site.apply(other), Signature, "root");
  std::string bytes = read_file(volume);
  bytes[bytes.size() / 2] ^= 1;
  fs::permissions(volume, fs::perms(0644));
  write_file(volume, bytes);
  CHECK_REFUSED(site.apply(waiving(site, made, waivers)), Digest, fs::path(volume).filename().string());
  CHECK_FALSE(fs::exists(site.current()));
}

TEST_CASE("a waiver is PATH=REASON, one for a file, on one line and of bounded length") {
  const std::vector<bundle::Waiver> good = bundle::parse_waivers({"lib/a.so=for b = c", "lib/b.so=x"});
  CHECK(good == std::vector<bundle::Waiver>{{"lib/a.so", "for b = c"}, {"lib/b.so", "x"}});
  CHECK(bundle::parse_waivers({}).empty());
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{
           {"lib/a.so", "no `=`"},
           {"lib/a.so=", "nothing after `=`"},
           {"lib/a.so=  ", "nothing after `=`"},
           {"=x", "names no path"},
           {"/lib/a.so=x", "names no path"},
           {"lib/../../a.so=x", "names no path"},
           {"lib/a.so=two\nself-test   passed", "not one line"},
           {"lib/a.so=\xff", "not one line"},
           {"lib/a.so=" + std::string(501, 'x'), "501 bytes of at most 500"}}) {
    const bundle::Error error = refusal([&] { bundle::parse_waivers({row.first}); });
    CHECK_MESSAGE(error.code() == bundle::ErrorCode::Usage, row.first);
    CHECK_MESSAGE(mentions(error, row.second), error.what());
  }
  CHECK_REFUSED(bundle::parse_waivers({"lib/a.so=x", "lib/a.so=y"}), Usage, "waived twice");
  std::vector<std::string> many;
  for (int i = 0; i < 101; ++i) many.push_back("lib/" + std::to_string(i) + ".so=x");
  CHECK_REFUSED(bundle::parse_waivers(many), Usage, "101 of at most 100");
}
