// SPDX-License-Identifier: Apache-2.0
// The corpus inside correctly signed bundles, offered to a prefix that is in use: refused, nothing written but staging,
// the generation in use as it was. A signature says who made a bundle, not that its archives are harmless.
#include <unistd.h>

#include "installer/generations/generation.hpp"
#include "installer/preflight/preflight.hpp"
#include "tests/installer/site.hpp"
#include "tests/support/hostile/hostile_tar.hpp"
#include "tests/support/hostile/hostile_wheel.hpp"
#include "tests/support/hostile/hostile_zip.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// A site that uses generation 1 of a good bundle, and what must not change there.
struct LiveSite {
  Site site;
  std::map<std::string, std::string> before;
  std::set<std::string> names = {"staging"};  // in the prefix, after a good installation
  int offered = 0;

  static TinyBundle good() {  // none of the corpus' bytes: what the store has is not unpacked again
    TinyBundle tiny;
    tiny.items = {wheel_item({.name = "live", .files = {{"live.py", "L = 1\n"}}})};
    return tiny;
  }
  LiveSite() {
    site.apply(site.make(good(), "good"));
    before = snapshot(site.prefix().generation(1));
    for (const fs::directory_entry& entry : fs::directory_iterator(site.prefix().folder()))
      names.insert(entry.path().filename());
  }

  // Offers `tiny` as version 2; `change` may spoil the bundle once it is signed.
  template <class Change>
  Error refusal_of(TinyBundle tiny, const Change& change) {
    tiny.version = 2;
    const MadeBundle made = site.make(tiny, "hostile" + std::to_string(++offered));
    change(made, site.key);
    ::alarm(60);
    const Error error = refusal([&] { site.apply(made); });
    ::alarm(0);
    check_untouched();
    fs::remove_all(made.folder);
    return error;
  }
  Error refusal_of(const std::vector<TinyItem>& items, std::uint64_t installed_size = 0) {
    TinyBundle tiny;
    tiny.items = items;
    tiny.installed_size = installed_size;
    return refusal_of(tiny, [](const MadeBundle&, const bundle::PrivateKey&) {});
  }

  void check_untouched() const {
    CHECK(fs::read_symlink(site.current()) == "generations/0001");
    CHECK(generation_numbers(site.prefix()) == std::vector<unsigned>{1});
    CHECK(snapshot(site.prefix().generation(1)) == before);
    for (const fs::directory_entry& entry : fs::directory_iterator(site.dir.path())) {
      const std::string name = entry.path().filename();
      CHECK((name == "good" || name == "prefix" || name.starts_with("hostile")));
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(site.prefix().folder())) {
      const std::string name = entry.path().filename();
      CHECK(names.contains(name));
    }
  }
};

TinyItem tree_of(const std::string& bytes, const std::string& into = "opt") {
  return {.path = "trees/t.tar",
          .kind = bundle::EntryKind::Tree,
          .bytes = bytes,
          .into = into,
          .encoding = bundle::Encoding::Zstd};
}

TinyItem wheel_of(const std::string& bytes, const std::string& file) {
  return {.path = "wheels/" + file, .kind = bundle::EntryKind::Wheel, .bytes = bytes};
}

// Signs `manifest` in place of the one that was made.
void reseal(const MadeBundle& made, const bundle::Manifest& manifest, const bundle::PrivateKey& key) {
  write_file(
      made.seal(),
      bundle::write_seal({.roots = {one_key_root(key)},
                          .manifest = signed_document(write_manifest(manifest), {&key}, bundle::kBundlePayloadType)}));
}

}  // namespace

TEST_CASE("hostile trees of a signed bundle are refused, and the environment in use stays as it was") {
  LiveSite live;
  for (const HostileCase& hostile : hostile_tars()) {
    CAPTURE(hostile.row + " " + hostile.name);
    const Error error = live.refusal_of({tree_of(hostile.bytes)});
    INFO(error.what());
    CHECK(error.code() == hostile.code);
    CHECK(mentions(error, hostile.word));
    CHECK(mentions(error, "t.tar"));
  }
}

TEST_CASE("hostile wheels of a signed bundle are refused, and the environment in use stays as it was") {
  LiveSite live;
  for (const HostileCase& hostile : hostile_wheels()) {
    CAPTURE(hostile.row + " " + hostile.name);
    const Error error = live.refusal_of({wheel_of(hostile.bytes, hostile.file)});
    INFO(error.what());
    CHECK(error.code() == hostile.code);
    CHECK(mentions(error, hostile.word));
    CHECK(mentions(error, hostile.file));
  }
}

TEST_CASE("hostile zips that are called wheels are refused, and the environment in use stays as it was") {
  LiveSite live;
  for (const HostileCase& hostile : hostile_zips()) {
    CAPTURE(hostile.row + " " + hostile.name);
    const Error error = live.refusal_of({wheel_of(hostile.bytes, "demo-1.0-py3-none-any.whl")});
    CHECK(error.code() == ErrorCode::Format);
    CHECK(mentions(error, "demo-1.0-py3-none-any.whl"));
  }
}

TEST_CASE("W09: an archive that unpacks to more than its signer promised is stopped there") {
  LiveSite live;
  const std::string zeros(std::size_t{8} << 20, '\0');
  const Error wheel = live.refusal_of({wheel_item({.files = {{"demo/zeros.bin", zeros}}})}, 1 << 20);
  CHECK(wheel.code() == ErrorCode::Format);
  CHECK(mentions(wheel, "unpacks to more than was signed"));
  CHECK(mentions(wheel, "demo/zeros.bin"));
  const Error tree = live.refusal_of({tree_of(make_tar({{tar_file("zeros"), zeros}}))}, 1 << 20);
  CHECK(mentions(tree, "unpacks to more than was signed"));
  std::vector<std::pair<bundle::TarMember, std::string>> many;
  for (int i = 0; i < 2000; ++i) many.push_back({tar_file(std::to_string(i)), ""});
  CHECK(mentions(live.refusal_of({tree_of(make_tar(many))}), "files, folders and links"));
}

TEST_CASE("A02: a link that leads out only through a link of another entry is refused") {
  LiveSite live;
  TinyItem second = tree_of(make_tar({{tar_link("z", "."), ""}}), "y");
  second.path = "trees/u.tar";
  const Error error = live.refusal_of({tree_of(make_tar({{tar_link("x", "y/z/../.."), ""}}), ""), second});
  CHECK(error.code() == ErrorCode::Format);
  CHECK(mentions(error, "leads out of the environment"));
}

TEST_CASE("W13: a wheel that puts a module into another one's package is refused") {
  LiveSite live;
  const Error error = live.refusal_of(
      {wheel_item({}), wheel_item({.name = "other", .files = {{"demo/evil.py", "x"}, {"other.py", "y"}}})});
  CHECK(error.code() == ErrorCode::Conflict);
  CHECK(mentions(error, "demo/evil.py"));
  CHECK(mentions(error, "wheels/demo-1.0-py3-none-any.whl"));
  CHECK(mentions(error, "wheels/other-1.0-py3-none-any.whl"));
}

TEST_CASE("W16: what another wheel's start-up files or modules would run is refused, with the names of both wheels") {
  LiveSite live;
  const std::string line = bundle::detail::namespace_line("google", true) + "\n";
  const TinyWheel evil{.name = "evil", .files = {{"google.cpython-311-x86_64-linux-gnu.so", "x"}}};
  const auto conflict = [&](const TinyWheel& victim, const TinyWheel& guest, const char* word) {
    CAPTURE(word);
    const Error error = live.refusal_of({wheel_item(victim), wheel_item(guest)});
    INFO(error.what());
    CHECK(error.code() == ErrorCode::Conflict);
    CHECK(mentions(error, word));
    CHECK(mentions(error, victim.file_name()));
    CHECK(mentions(error, guest.file_name()));
  };
  conflict({.files = {{"demo-nspkg.pth", line}, {"google/demo/__init__.py", "x"}}}, evil, "to make a namespace");
  conflict({.files = {{"google.py", "x"}}}, evil, "the same name");
  conflict({.files = {{"google/auth.py", "x"}}}, {.name = "evil", .files = {{"google/auth.abi3.so", "x"}}},
           "the same name");
  conflict({.files = {{"six.py", "x"}}}, {.name = "evil", .files = {{"six.pyc", "x"}}}, "the same name");
  conflict({.files = {{"demo.pth", "demo_path\n"}, {"demo_path/demo.py", "x"}}},
           {.name = "evil", .files = {{"demo_path/sitecustomize.py", "x"}}}, "package of another one");
}

TEST_CASE("a start-up file that the manifest names by its digest is installed, and no other") {
  Site site;
  const std::string line = "import sys; sys.flags\n";
  TinyBundle tiny;
  tiny.items = {wheel_item({.files = {{"demo.pth", line}}})};
  tiny.startup_files = {bundle::sha256(bundle::as_bytes(std::string("import os\n")))};
  CHECK_REFUSED(site.apply(site.make(tiny, "other")), Format, "when Python starts");
  tiny.startup_files = {bundle::sha256(bundle::as_bytes(line))};
  const MadeBundle made = site.make(tiny, "named");
  CHECK(made.manifest.installer_level == 3);
  site.apply(made);
  CHECK(read_file(site.site_packages() / "demo.pth") == line);
  tiny.startup_files.clear();  // the same wheel, now in the store, of a bundle that does not allow it
  tiny.version = 2;
  CHECK_REFUSED(site.apply(site.make(tiny, "later")), Format, "when Python starts");
}

TEST_CASE("an entry that is not the one its own digest names does not get that digest's place in the store") {
  LiveSite live;
  TinyBundle tiny;
  SUBCASE("a wheel") {
    tiny.items = {wheel_item({.name = "other", .files = {{"o.py", "1"}}})};
  }
  SUBCASE("a file") {
    tiny.items = {file_item("files/x", "bytes", "share/x")};
  }
  SUBCASE("a tree that is stored as it is") {
    tiny.items = {tree_of(make_tar({{tar_file("a"), "x"}}))};
    tiny.items[0].encoding = bundle::Encoding::Identity;
  }
  const bundle::Digest claimed = bundle::sha256(bundle::as_bytes("a wheel that an honest bundle will bring"));
  const Error error = live.refusal_of(tiny, [&](const MadeBundle& made, const bundle::PrivateKey& key) {
    bundle::Manifest manifest = made.manifest;
    manifest.entries[0].sha256 = manifest.entries[0].stored_sha256 = claimed;
    reseal(made, manifest, key);
  });
  CHECK(error.code() == ErrorCode::Digest);
  CHECK(mentions(error, claimed.hex()));
  for (const fs::directory_entry& item : fs::recursive_directory_iterator(live.site.prefix().folder()))
    CHECK(item.path().string().find(claimed.hex()) == std::string::npos);
}

TEST_CASE("M02: a seal of a tebibyte is refused before it is read") {
  LiveSite live;
  const Error error = live.refusal_of(TinyBundle{}, [](const MadeBundle& made, const bundle::PrivateKey&) {
    fs::resize_file(made.seal(), std::uint64_t{1} << 40);
  });
  CHECK(error.code() == ErrorCode::Format);
  CHECK(mentions(error, "tiny-2.seal"));
  CHECK(mentions(error, "too large"));
}

TEST_CASE("C02: a prefix where no environment can live is refused before anything is written") {
  struct Mounted final : Disk {
    installer::Mount mounted;
    explicit Mounted(installer::Mount mount) : mounted(mount) {}
    installer::Mount mount(const fs::path&) const override { return mounted; }
  };
  const Site site;
  const MadeBundle made = site.make({});
  for (const auto& [mount, word] :
       std::vector<std::pair<installer::Mount, const char*>>{{{.read_only = true}, "read-only"},
                                                             {{.no_exec = true}, "noexec"},
                                                             {{.type = 0x4d44}, "FAT"},
                                                             {{.type = 0x2011BAB0}, "exFAT"},
                                                             {{.type = 0x7366746e}, "NTFS"}}) {
    Mounted disk(mount);
    CHECK_REFUSED(site.apply(made, disk), Platform, word);
  }
  CHECK(!fs::exists(site.prefix().folder()));
  CHECK_REFUSED(check_prefix(Prefix("/tmp/a\nb")), Usage, "control character");
}

TEST_CASE("C04: records of another version of the installer are neither read nor changed") {
  LiveSite live;
  const auto rewrite = [](const fs::path& path) {
    std::string text = read_file(path);
    const std::string before = "\"format\":1";
    REQUIRE(text.find(before) != std::string::npos);
    fs::permissions(path, fs::perms(0644));
    write_file(path, text.replace(text.find(before), before.size(), "\"format\":2"));
  };
  SUBCASE("of an item") {
    for (const fs::directory_entry& item : fs::directory_iterator(live.site.prefix().store())) {
      rewrite(item.path() / kRecordName);
      CHECK_REFUSED(read_item_record(item.path() / kRecordName), CannotCheck, "does not know");
    }
    TinyBundle next = LiveSite::good();
    next.version = 2;
    CHECK_REFUSED(live.site.apply(live.site.make(next, "hostile")), CannotCheck, kRecordName.data());
  }
  SUBCASE("of a generation") {
    rewrite(live.site.prefix().generation(1) / bundle::kGenerationRecord);
    CHECK_REFUSED(read_generation_record(live.site.prefix().generation(1), 1), CannotCheck, "generation.json");
  }
  CHECK(fs::read_symlink(live.site.current()) == "generations/0001");
}
