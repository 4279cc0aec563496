// SPDX-License-Identifier: Apache-2.0
// Files that a bundle leaves out of a wheel because another one owns them: what lies there, what RECORD says of it, and
// every way in which a bundle could say it wrongly.
#include "installer/doctor/doctor.hpp"
#include "installer/generations/generation_record.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

constexpr const char* kShared = "lib/python3.11/site-packages/shared/lib/libx.so";

TinyWheel wheel(const std::string& name, const std::string& library) {
  return {.name = name, .files = {{"shared/lib/libx.so", library}, {name + "/__init__.py", ""}}};
}

// Two wheels that both bring the library; the first one leaves out what the caller says.
TinyBundle two_owners(const std::vector<std::string>& of_first, const std::vector<std::string>& of_second = {}) {
  TinyBundle tiny;
  tiny.items = {wheel_item(wheel("first", "older")), wheel_item(wheel("second", "newest"))};
  tiny.items[0].left_out = of_first;
  tiny.items[1].left_out = of_second;
  return tiny;
}

std::string row(const std::string& path, const std::string& bytes) {
  return path +
         ",sha256=" + bundle::to_base64(bundle::sha256(bundle::as_bytes(bytes)).bytes, bundle::Base64::UrlNoPad) + "," +
         std::to_string(bytes.size()) + "\n";
}

}  // namespace

TEST_CASE("a path that two wheels bring is refused unless one of them leaves it out") {
  const Site site;
  CHECK_REFUSED(site.apply(site.make(two_owners({}))), Conflict, "wheels/first-1.0-py3-none-any.whl and");
}

TEST_CASE("what a wheel leaves out is its owner's file, and the RECORDs of both say so") {
  const Site site;
  const Applied applied = site.apply(site.make(two_owners({kShared})));
  CHECK(read_file(site.current() / kShared) == "newest");
  for (const char* info : {"first-1.0.dist-info", "second-1.0.dist-info"}) {
    const std::string record = read_file(site.site_packages() / info / "RECORD");
    CHECK(record.find(row("shared/lib/libx.so", "newest")) != record.npos);
    CHECK(record.find(row("shared/lib/libx.so", "older")) == record.npos);
  }
  CHECK(applied.record->audit.record_rows == 2 * 6);  // library, module, METADATA, WHEEL, INSTALLER, RECORD
  CHECK(applied.record->audit.files == 2 * 6 - 1);
}

TEST_CASE("the owner may stand before the one that leaves its file out, and a program may be left out too") {
  const Site site;
  TinyBundle tiny = two_owners({}, {"bin/run", kShared});
  const auto with_script = [](TinyWheel made) {
    made.entry_points = "[console_scripts]\nrun = " + made.name + ":main\n";
    return made;
  };
  tiny.items[0].bytes = make_wheel(with_script(wheel("first", "older")));
  tiny.items[1].bytes = make_wheel(with_script(wheel("second", "newest")));
  site.apply(site.make(tiny));
  CHECK(read_file(site.current() / kShared) == "older");
  CHECK(read_file(site.current() / "bin/run").find("from first import main") != std::string::npos);
}

TEST_CASE("a package folder of another wheel may be entered with files that are left out") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {wheel_item({.name = "owner", .files = {{"pkg/__init__.py", "1"}, {"pkg/a.py", "a"}}}),
                wheel_item({.name = "guest", .files = {{"pkg/a.py", "b"}, {"guest.py", ""}}})};
  tiny.items[1].left_out = {"lib/python3.11/site-packages/pkg/a.py"};
  site.apply(site.make(tiny));
  CHECK(read_file(site.site_packages() / "pkg/a.py") == "a");
}

TEST_CASE("a package may have files of other wheels where the manifest says so, and nowhere else") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {wheel_item({.name = "owner", .files = {{"pkg/__init__.py", "1"}, {"pkg/a.py", "a"}}}),
                wheel_item({.name = "guest", .files = {{"pkg/plugins/b.py", "b"}}})};
  SUBCASE("nobody said it") {
    CHECK_REFUSED(site.apply(site.make(tiny)), Conflict, "pkg/plugins/b.py");
  }
  SUBCASE("of another folder") {
    tiny.items[1].shared = {"pkg/plug", "pkg/plugins/b.py"};
    CHECK_REFUSED(site.apply(site.make(tiny)), Conflict, "pkg/plugins/b.py");
  }
  SUBCASE("of another wheel") {
    tiny.items[0].shared = {"pkg/plugins"};
    CHECK_REFUSED(site.apply(site.make(tiny)), Conflict, "pkg/plugins/b.py");
  }
  SUBCASE("of this folder") {
    tiny.items[1].shared = {"pkg/plugins"};
    const MadeBundle made = site.make(tiny);
    CHECK(made.manifest.installer_level == 7);
    site.apply(made);
    CHECK(read_file(site.site_packages() / "pkg/plugins/b.py") == "b");
    const auto record = read_generation_record(site.prefix().generation(1), 1);
    REQUIRE(record.entries.size() == 2);
    CHECK(record.entries[0].shared == std::vector{bundle::SafePath::parse("pkg/plugins", "")});
    Disk disk;
    bundle::Progress silent(nullptr);
    CHECK(doctor({.prefix = site.prefix(), .now = kNow}, disk, silent).findings.empty());
  }
  SUBCASE("but no module of a name that is taken") {
    tiny.items[1] = wheel_item({.name = "guest", .files = {{"pkg/a/__init__.py", "b"}}});
    tiny.items[1].shared = {"pkg"};
    CHECK_REFUSED(site.apply(site.make(tiny)), Conflict, "the same name");
  }
}

TEST_CASE("no folder of Sealift's own is reached through a package that is shared") {
  for (const char* place : {"include/sealift/train.hpp", "share/sealift/environment", "bin/sealift-install"}) {
    CAPTURE(place);
    const Site site;
    TinyBundle tiny;
    tiny.items = {wheel_item({.name = "owner", .files = {{"pkg/__init__.py", "1"}}}),
                  wheel_item({.name = "guest", .files = {{"guest-1.0.data/data/" + std::string(place), "b"}}})};
    tiny.items[1].shared = {std::string(place).substr(0, std::string(place).rfind('/'))};
    CHECK_REFUSED(site.apply(site.make(tiny)), Conflict, "is Sealift's own");
  }
}

TEST_CASE("files with decomposed names are installed as they were published, left out and found again") {
  const Site site;
  const std::string name = "pkg/Ge\xcc\x81ne\xcc\x81rique.txt";
  TinyBundle tiny;
  tiny.items = {wheel_item({.name = "owner", .files = {{"pkg/__init__.py", "1"}, {name, "a"}}}),
                wheel_item({.name = "guest", .files = {{name, "a"}, {"guest.py", ""}}})};
  tiny.items[1].left_out = {"lib/python3.11/site-packages/" + name};
  site.apply(site.make(tiny));
  CHECK(read_file(site.site_packages() / name) == "a");
  CHECK(read_file(site.site_packages() / "guest-1.0.dist-info/RECORD").find(row(name, "a")) != std::string::npos);
  Disk disk;
  bundle::Progress silent(nullptr);
  CHECK(doctor({.prefix = site.prefix(), .now = kNow}, disk, silent).findings.empty());
}

TEST_CASE("a bundle that leaves out what is not there, or what nobody brings, is refused") {
  const Site site;
  SUBCASE("a file that the wheel does not have") {
    CHECK_REFUSED(site.apply(site.make(two_owners({"lib/other", kShared}))), Format, "which the wheel does not have");
  }
  SUBCASE("the wheel's RECORD, which the installer writes") {
    CHECK_REFUSED(
        site.apply(site.make(two_owners({"lib/python3.11/site-packages/first-1.0.dist-info/RECORD", kShared}))), Format,
        "which the wheel does not have");
  }
  SUBCASE("a file that has no other owner") {
    CHECK_REFUSED(site.apply(site.make(two_owners({"lib/python3.11/site-packages/first/__init__.py", kShared}))),
                  Format, "which nobody brings");
  }
  SUBCASE("a file that each leaves to the other") {
    CHECK_REFUSED(site.apply(site.make(two_owners({kShared}, {kShared}))), Format, "which nobody brings");
  }
  CHECK(!fs::exists(site.current()));
}
