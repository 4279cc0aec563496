// SPDX-License-Identifier: Apache-2.0
// Entries that are not what they seem: lying wheels, archives that try to leave their folder, two owners of one path.
#include "installer/store/unpack.hpp"

#include "installer/doctor/doctor.hpp"
#include "installer/generations/generation.hpp"
#include "installer/preflight/verification.hpp"
#include "installer/store/unpack_wheel.hpp"
#include "tests/installer/crash_site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Refused; nothing is current, no store was made, and nothing appeared beside the prefix.
void check_apply_refused(const std::vector<TinyItem>& items, ErrorCode code, const std::string& text) {
  const Site site;
  TinyBundle tiny;
  tiny.items = items;
  const MadeBundle made = site.make(tiny);
  const Error error = refusal([&] { site.apply(made); });
  INFO(error.what());
  CHECK(error.code() == code);
  CHECK(mentions(error, text));
  CHECK(!fs::exists(site.current()));
  CHECK(generation_numbers(site.prefix()).empty());
  std::vector<std::string> beside;
  for (const fs::directory_entry& entry : fs::directory_iterator(site.dir.path()))
    beside.push_back(entry.path().filename());
  CHECK(beside.size() == 2);  // bundle and prefix
}

}  // namespace

TEST_CASE("a file that RECORD lacks is installed with a row of its own, and a row of no file is not") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {wheel_item({.unrecorded = {"demo/__init__.py"}, .extra_record = "demo/ghost.py,,\n"})};
  site.apply(site.make(tiny));  // with the audit, which holds every file to RECORD
  const std::string record = bundle::read_text(site.site_packages() / "demo-1.0.dist-info/RECORD", 1 << 20);
  const std::string digest =
      bundle::to_base64(bundle::sha256(bundle::as_bytes("ANSWER = 42\n")).bytes, bundle::Base64::UrlNoPad);
  CHECK(record.find("demo/__init__.py,sha256=" + digest + ",12\n") != record.npos);
  CHECK(record.find("ghost") == record.npos);
}

TEST_CASE("a digest of RECORD is taken as it is, since the packer compared it; verify --deep and doctor do") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {wheel_item({.record_digests = {{"demo/__init__.py", "sha256=" + std::string(43, 'A')}}})};
  const MadeBundle made = site.make(tiny);
  bundle::Progress silent(nullptr);
  CHECK(verify_every_byte(bundle::open(made.folder), made.trusted, kNow, 2, silent).failures.empty());
  const Verification deep = verify_every_byte(bundle::open(made.folder), made.trusted, kNow, 2, silent, true);
  REQUIRE(deep.failures.size() == 1);
  CHECK(deep.failures[0].code() == ErrorCode::Digest);
  CHECK(mentions(deep.failures[0], "demo/__init__.py"));
  site.apply(made);
  Disk disk;
  const Checkup checkup = doctor({.prefix = site.prefix(), .now = kNow}, disk, silent);
  REQUIRE(checkup.findings.size() == 1);
  CHECK(checkup.findings[0].kind == Deviation::Kind::Changed);
  CHECK(checkup.findings[0].paths.front().ends_with("demo/__init__.py"));
}

TEST_CASE("a tree whose headers say digests that are not its files' is found by verify --deep") {
  const Site site;
  bundle::TarMember liar = tar_file("lib/a");
  liar.size = 1;
  liar.comment = bundle::digest_comment(bundle::sha256({}));
  TinyItem tree = tree_item("trees/t.tar", {});
  tree.bytes = bundle::write_tar_header(liar) + "x" + std::string(bundle::tar_padding(1), '\0') + bundle::tar_end();
  TinyBundle tiny;
  tiny.items = {tree};
  const MadeBundle made = site.make(tiny);
  bundle::Progress silent(nullptr);
  const Verification deep = verify_every_byte(bundle::open(made.folder), made.trusted, kNow, 2, silent, true);
  REQUIRE(deep.failures.size() == 1);
  CHECK(mentions(deep.failures[0], "lib/a"));
}

TEST_CASE("a tree that says no digests is installed, and its record has those of the bytes") {
  const Site site;
  bundle::TarMember plain = tar_file("lib/a");
  plain.size = 1;
  TinyItem tree = tree_item("trees/t.tar", {});
  tree.bytes = bundle::write_tar_header(plain) + "x" + std::string(bundle::tar_padding(1), '\0') + bundle::tar_end();
  TinyBundle tiny;
  tiny.items = {tree};
  const MadeBundle made = site.make(tiny);
  site.apply(made);
  const ItemRecord record = Store(site.prefix()).record(made.manifest.entries[0]);
  REQUIRE(record.files.size() == 1);
  CHECK(record.files[0].sha256 == bundle::sha256(bundle::as_bytes("x")));
}

TEST_CASE("a start-up file whose digest in RECORD is another one is refused, also where that one is allowed") {
  const std::string allowed = "import sys; sys.flags\n", evil = "import os; os.abort()\n";
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(allowed));
  TinyBundle tiny;
  tiny.items = {wheel_item(
      {.files = {{"demo.pth", evil}},
       .record_digests = {{"demo.pth", "sha256=" + bundle::to_base64(digest.bytes, bundle::Base64::UrlNoPad)}}})};
  tiny.startup_files = {digest};
  const Site site;
  CHECK_REFUSED(site.apply(site.make(tiny)), Format, "another digest of a start-up file");
}

TEST_CASE("a wheel with a path that leaves its folder is refused") {
  check_apply_refused({wheel_item({.files = {{"../escape.py", "x"}}})}, ErrorCode::Format, "../escape.py");
  check_apply_refused({wheel_item({.files = {{"demo-1.0.data/scripts/../../escape", "x"}}})}, ErrorCode::Format,
                      "not safe");
  check_apply_refused({wheel_item({.files = {{"/etc/escape", "x"}}})}, ErrorCode::Format, "absolute");
}

TEST_CASE("a wheel cannot bring a program that is named as the interpreter") {
  check_apply_refused({wheel_item({.entry_points = "[console_scripts]\npython3 = demo:main\n"})}, ErrorCode::Conflict,
                      "python3");
  check_apply_refused({wheel_item({.files = {{"demo-1.0.data/scripts/python", "#!python\n"}}})}, ErrorCode::Conflict,
                      "interpreter");
}

TEST_CASE("a tar that writes through a link, or has a path twice, is refused") {
  check_apply_refused({tree_item("t.tar", {{tar_link("a", "b"), ""}, {tar_file("a/x"), "x"}})}, ErrorCode::Format,
                      "parent is not a folder");
  check_apply_refused({tree_item("t.tar", {{tar_file("a"), "1"}, {tar_file("a/x"), "x"}})}, ErrorCode::Format,
                      "parent is not a folder");
  check_apply_refused({tree_item("t.tar", {{tar_file("a"), "1"}, {tar_file("a"), "2"}})}, ErrorCode::Format, "twice");
  check_apply_refused({tree_item("t.tar", {{tar_folder("a"), ""}, {tar_link("a", "b"), ""}})}, ErrorCode::Format,
                      "twice");
}

TEST_CASE("a tar with a path or a link that leaves its tree is refused") {
  check_apply_refused({tree_item("t.tar", {{tar_file("../x"), "x"}})}, ErrorCode::Format, "../x");
  check_apply_refused({tree_item("t.tar", {{tar_link("a", "/etc/passwd"), ""}})}, ErrorCode::Format, "leaves the tree");
  check_apply_refused({tree_item("t.tar", {{tar_link("a/b", "../../x"), ""}})}, ErrorCode::Format, "leaves the tree");
}

TEST_CASE("a link that leads out only through another link is refused") {
  // Each looks harmless alone: l/up is the root, so l/out is two folders above it.
  check_apply_refused({tree_item("t.tar", {{tar_link("l/up", ".."), ""}, {tar_link("l/out", "up/../.."), ""}})},
                      ErrorCode::Format, "l/out");
  check_apply_refused({tree_item("t.tar", {{tar_link("a", "b"), ""}, {tar_link("b", "a"), ""}})}, ErrorCode::Format,
                      "circle");
}

TEST_CASE("links that stay inside are fine, also dangling ones and through other links") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {tree_item("t.tar",
                          {{tar_file("lib/x/deep.txt"), "deep"},
                           {tar_link("lib64", "lib"), ""},
                           {tar_link("short", "lib64/x/../x/deep.txt"), ""},
                           {tar_link("nowhere", "lib/none"), ""}},
                          "opt")};
  site.apply(site.make(tiny));
  CHECK(read_file(site.current() / "opt/short") == "deep");
  CHECK(fs::is_symlink(site.current() / "opt/nowhere"));
}

TEST_CASE("a truncated tree is refused") {
  TinyItem item = tree_item("t.tar", {{tar_file("a"), std::string(2000, 'x')}});
  item.bytes.resize(1500);
  check_apply_refused({item}, ErrorCode::Format, "not closed");
}

TEST_CASE("two entries that claim one path are a conflict that names both") {
  const TinyItem demo = wheel_item({});
  SUBCASE("two wheels, even with equal bytes") {
    const TinyItem other = wheel_item({.name = "other", .files = {{"demo/__init__.py", "ANSWER = 42\n"}}});
    check_apply_refused({demo, other}, ErrorCode::Conflict, "wheels/demo-1.0-py3-none-any.whl and wheels/other-1.0");
  }
  SUBCASE("a wheel and a file") {
    check_apply_refused({demo, file_item("files/x", "x", "lib/python3.11/site-packages/demo/__init__.py")},
                        ErrorCode::Conflict, "files/x");
  }
  SUBCASE("a file where another entry has a folder") {
    check_apply_refused({demo, file_item("files/x", "x", "lib/python3.11")}, ErrorCode::Conflict, "lib/python3.11");
  }
  SUBCASE("a link where another entry puts files") {
    check_apply_refused({demo, tree_item("t.tar", {{tar_link("lib", "elsewhere"), ""}})}, ErrorCode::Conflict, "t.tar");
  }
  SUBCASE("the installer's own record") {
    check_apply_refused({demo, tree_item("t.tar", {{tar_file("generation.json"), "x"}})}, ErrorCode::Conflict,
                        "own record");
  }
  SUBCASE("two programs of one name") {
    const std::string points = "[console_scripts]\nrun = demo:main\n";
    check_apply_refused({wheel_item({.entry_points = points}),
                         wheel_item({.name = "other", .files = {{"o.py", ""}}, .entry_points = points})},
                        ErrorCode::Conflict, "bin/run");
  }
}

TEST_CASE("folders may be shared by any number of entries") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {wheel_item({.name = "ns_a", .files = {{"ns/a.py", "A = 1\n"}}}),
                wheel_item({.name = "ns_b", .files = {{"ns/b.py", "B = 1\n"}}}),
                tree_item("t.tar", {{tar_folder("lib"), ""}, {tar_folder("lib/python3.11"), ""}})};
  site.apply(site.make(tiny));
  CHECK(fs::exists(site.site_packages() / "ns/a.py"));
  CHECK(fs::exists(site.site_packages() / "ns/b.py"));
}

TEST_CASE("the parts of .data go to the prefix's own folders, and RECORD tells where") {
  const Site site;
  const TinyWheel wheel{.files = {{"demo/__init__.py", ""},
                                  {"demo-1.0.data/purelib/pure.py", "P = 1\n"},
                                  {"demo-1.0.data/platlib/plat.py", "P = 2\n"},
                                  {"demo-1.0.data/headers/demo.h", "int x;\n"},
                                  {"demo-1.0.data/data/share/man/demo.1", "man\n"},
                                  {"demo-1.0.data/scripts/tool", "#!python\nprint(1)\n"}}};
  TinyBundle tiny;
  tiny.items = {wheel_item(with_odd_name(wheel, "demo-1.0.data/data/share/a,\"b\"", "odd\n"))};
  site.apply(site.make(tiny));
  CHECK(fs::exists(site.site_packages() / "pure.py"));
  CHECK(fs::exists(site.site_packages() / "plat.py"));
  CHECK(fs::exists(site.current() / "include/python3.11/demo/demo.h"));
  CHECK(fs::exists(site.current() / "share/man/demo.1"));
  CHECK(!fs::exists(site.site_packages() / "demo-1.0.data"));
  const std::string record = read_file(site.site_packages() / "demo-1.0.dist-info/RECORD");
  for (const char* row : {"../../../bin/tool,sha256=", "../../../include/python3.11/demo/demo.h,sha256=",
                          "../../../share/man/demo.1,sha256=", "\"../../../share/a,\"\"b\"\"\",sha256=",
                          "pure.py,sha256=", "demo-1.0.dist-info/INSTALLER,sha256=", "demo-1.0.dist-info/RECORD,,\n"}) {
    INFO(record);
    CHECK(record.find(row) != std::string::npos);
  }
  CHECK(read_file(site.current() / "bin/tool").starts_with("#!/bin/sh\n"));
  CHECK(read_file(site.current() / "bin/tool").ends_with("\nprint(1)\n"));
}

TEST_CASE("many entries on many threads give the same store as on one") {
  TinyBundle tiny;
  tiny.items.clear();
  for (int i = 0; i < 24; ++i)
    tiny.items.push_back(file_item("files/" + std::to_string(100 + i), numbers_text(static_cast<unsigned>(i), 300),
                                   "share/" + std::to_string(i)));
  std::map<std::string, std::string> stores[2];
  for (const unsigned threads : {1u, 8u}) {
    Site site;
    site.threads = threads;
    site.apply(site.make(tiny));
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(site.prefix().store()))
      if (file.is_regular_file())
        stores[threads > 1][file.path().lexically_relative(site.prefix().store())] = read_file(file.path());
  }
  CHECK(stores[0].size() == 48);
  CHECK(stores[0] == stores[1]);
}

TEST_CASE("a wheel that many threads share gives the same store as on one, its record's bytes too") {
  std::map<std::string, std::string> stores[2];
  for (const unsigned threads : {1u, 8u}) {
    Site site;
    site.threads = threads;
    site.apply(site.make(one_large_wheel()));
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(site.prefix().store()))
      if (file.is_regular_file())
        stores[threads > 1][file.path().lexically_relative(site.prefix().store())] = read_file(file.path());
    CHECK(read_file(site.current() / "bin/tool").ends_with("\nprint(1)\n"));
  }
  CHECK(stores[0].size() == 33);
  CHECK(stores[0] == stores[1]);
}

TEST_CASE("a wheel that threads share is refused for what one of them finds, and nothing of it is named") {
  Site site;
  site.threads = 8;
  TinyBundle lying = one_large_wheel();
  std::string text;
  SUBCASE("a CRC-32 that does not hold") {
    std::string& wheel = lying.items[0].bytes;
    wheel[wheel.find("demo/data3") + 30] ^= 1;
    text = "demo/data3";
  }
  SUBCASE("more bytes than were signed") {
    lying.installed_size = 150'000;
    text = "unpacks to more than was signed";
  }
  const MadeBundle made = site.make(lying);
  const Error error = refusal([&] { site.apply(made); });
  INFO(error.what());
  CHECK(error.code() == ErrorCode::Format);
  CHECK(mentions(error, text));
  CHECK(!fs::exists(site.prefix().store()));
  CHECK(!fs::exists(site.prefix().staged_items() / bundle::store_item_name(made.manifest.entries.back())));
}
