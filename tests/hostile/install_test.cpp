// SPDX-License-Identifier: Apache-2.0
// The corpus inside correctly signed bundles, offered to a prefix that is in use: refused, nothing written but staging,
// the generation in use as it was. A signature says who made a bundle, not that its archives are harmless.
#include "installer/generations/generation.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/preflight/preflight.hpp"
#include "installer/preflight/verification.hpp"
#include "tests/installer/site.hpp"
#include "tests/support/hostile/hostile_tar.hpp"
#include "tests/support/hostile/hostile_wheel.hpp"
#include "tests/support/hostile/hostile_zip.hpp"
#include "tests/support/hostile/time_limit.hpp"

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
    const Error error = in_time([&] { site.apply(made); });
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

// Signs `manifest` in place of the made one.
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
    if (hostile.code == ErrorCode::Digest) continue;  // a digest of RECORD: for the packer and for verify --deep
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

TEST_CASE("W17: files, links and trees of a bundle lie where the table lets them, and nowhere in Python's own places") {
  LiveSite live;
  const auto refused = [&](const TinyItem& item, const std::string& path) {
    CAPTURE(path);
    const Error error = live.refusal_of({item});
    INFO(error.what());
    CHECK(error.code() == ErrorCode::Conflict);
    CHECK(mentions(error, item.path));
    CHECK(mentions(error, path));
  };
  for (const char* path :
       {"lib/python3.11/site-packages/evil.pth", "lib/python3.11/site-packages/evil/x.py", "lib/python3.11/os.py",
        "lib/Python311.zip", "lib/runtime/ld-linux-x86-64.so.2", "lib/libc.so.6", "lib/libcuda.so.1",
        "lib/glibc-hwcaps/x86-64-v3/libz.so.1", "pyvenv.cfg", "bin/pyvenv.cfg", "bin/python311._pth", "bin/python4",
        "libexec/python3", "bin/activate", "include/python3.11/Python.h"}) {
    refused(file_item("files/evil", "x", path), path);
    refused(tree_of(make_tar({{tar_file(path), "x"}}), ""), path);
    refused(tree_of(make_tar({{tar_link(path, "somewhere"), ""}}), ""), path);
  }
  refused(tree_of(make_tar({{tar_file("evil.pth"), "x"}}), "lib/python3.11/site-packages"),
          "lib/python3.11/site-packages/evil.pth");
  refused(tree_of(make_tar(
                      {{tar_file("bin/python3", true), "x"}, {tar_file("lib/python3.11/site-packages/evil.pth"), "x"}}),
                  ""),
          "lib/python3.11/site-packages/evil.pth");
}

TEST_CASE("N04: what Sealift reads is placed by the entries that are for it, and by no other") {
  LiveSite live;
  const auto refused = [&](const TinyItem& item, const std::string& path) {
    CAPTURE(path);
    const Error error = live.refusal_of({item});
    INFO(error.what());
    CHECK(error.code() == ErrorCode::Conflict);
    CHECK(mentions(error, item.path));
    CHECK(mentions(error, "Sealift's own"));
  };
  for (const char* path : {"share/sealift/environment", "SHARE/Sealift/Environment", "share/sealift/catalogue.json",
                           "share/sealift/golden/x.json", "apt/Release", "rpm/repodata/repomd.xml", "bin/sealift-train",
                           "lib/libsealift_train_cuda.so", "libexec/sealift/cc", "include/sealift/train.hpp"}) {
    refused(file_item("files/models/evil", "A=1\n", path), path);
    refused(tree_of(make_tar({{tar_file(path), "x"}}), ""), path);
    refused(tree_of(make_tar({{tar_file("bin/python3", true), "x"}, {tar_file(path), "x"}}), ""), path);
    refused(tree_of(make_tar({{tar_link(path, "somewhere"), ""}}), ""), path);
  }
  refused(file_item("programs/share/sealift/environment", "A=1\n", "share/sealift/environment"),
          "share/sealift/environment");
  refused(tree_of(make_tar({{tar_file("environment"), "x"}}), "share/sealift"), "share/sealift/environment");
}

TEST_CASE("compiled files beside their sources, whatever they say of themselves, are not installed") {
  Site site;
  TinyBundle tiny;
  tiny.items = {wheel_item(
      {.files = {{"demo/a.py", "A = 1\n"},
                 {"demo/__pycache__/a.cpython-311.pyc", std::string("\xa7\r\r\n", 4) + std::string(12, '\0') + "evil"},
                 {"demo/whole.pyc", "a module of its own"}}})};
  site.apply(site.make(tiny));
  CHECK(fs::exists(site.site_packages() / "demo/a.py"));
  CHECK(fs::exists(site.site_packages() / "demo/whole.pyc"));
  CHECK_FALSE(fs::exists(site.site_packages() / "demo/__pycache__"));
  CHECK(read_file(site.site_packages() / "demo-1.0.dist-info/RECORD").find("__pycache__") == std::string::npos);
}

TEST_CASE("wheels that share an empty __init__.py and no folder are installed together, and others are not") {
  const std::string init = "lib/python3.11/site-packages/shared/__init__.py";
  const auto bundle_of = [&](const TinyWheel& first, const TinyWheel& second) {
    TinyBundle tiny;
    tiny.items = {wheel_item(first), wheel_item(second)};
    const auto has_init = [](const TinyWheel& wheel) { return wheel.files.contains("shared/__init__.py"); };
    if (has_init(first) && has_init(second)) tiny.items[1].left_out = {init};
    return tiny;
  };
  const TinyWheel one{.name = "one", .files = {{"shared/__init__.py", ""}, {"shared/one/lib.so", "1"}}};
  Site site;
  site.apply(site.make(bundle_of(one, {.name = "two", .files = {{"shared/two/lib.so", "2"}}}), "absent"));
  CHECK(read_file(site.site_packages() / "shared/two/lib.so") == "2");
  Site equal;
  equal.apply(equal.make(
      bundle_of(one, {.name = "two", .files = {{"shared/__init__.py", ""}, {"shared/two/lib.so", "2"}}}), "equal"));
  CHECK(read_file(equal.site_packages() / "shared/__init__.py").empty());
  LiveSite live;
  const auto refused = [&](const TinyWheel& first, const TinyWheel& second) {
    const Error error = live.refusal_of(bundle_of(first, second).items);
    INFO(error.what());
    CHECK(error.code() == ErrorCode::Conflict);
  };
  refused({.name = "one", .files = {{"shared/__init__.py", "code"}, {"shared/one/lib.so", "1"}}},
          {.name = "two", .files = {{"shared/two/lib.so", "2"}}});
  refused({.name = "one", .files = {{"shared/__init__.py", ""}, {"shared/core.py", "try: import shared.fast"}}},
          {.name = "two", .files = {{"shared/fast/__init__.py", "x"}}});
  refused(one, {.name = "two", .files = {{"shared/one/evil.py", "x"}}});
}

TEST_CASE("a start-up file that the manifest names by its digest is installed, and no other") {
  Site site;
  const std::string line = "import sys; sys.flags\n";
  TinyBundle tiny;
  tiny.items = {wheel_item({.files = {{"demo.pth", line}}})};
  tiny.startup_files = {bundle::sha256(bundle::as_bytes(std::string("import os\n")))};
  CHECK_REFUSED(site.apply(site.make(tiny, "other")), Format, "when Python starts");
  tiny.startup_files = {bundle::sha256(bundle::as_bytes(line))};
  const std::string named = "sha256=" + bundle::to_base64(tiny.startup_files[0].bytes, bundle::Base64::UrlNoPad);
  TinyBundle lying = tiny;
  lying.items = {wheel_item({.files = {{"demo.pth", "import evil\n"}}, .record_digests = {{"demo.pth", named}}})};
  CHECK_REFUSED(site.apply(site.make(lying, "lying")), Format, "another digest of a start-up file");
  const MadeBundle made = site.make(tiny, "named");
  CHECK(made.manifest.installer_level == 3);
  site.apply(made);
  CHECK(read_file(site.site_packages() / "demo.pth") == line);
  tiny.startup_files.clear();  // the same wheel, now in the store, of a bundle that does not allow it
  tiny.version = 2;
  CHECK_REFUSED(site.apply(site.make(tiny, "later")), Format, "when Python starts");
}

TEST_CASE("whoever signs other bytes under a published digest gets no place where another signer's bytes will be") {
  LiveSite live;
  TinyBundle honest, lying;
  honest.version = 3, lying.version = 2;
  SUBCASE("a wheel") {
    honest.items = {wheel_item({.files = {{"demo/__init__.py", "GOOD = 1\n"}}})};
    lying.items = {wheel_item({.files = {{"demo/__init__.py", "EVIL = 1\n"}}})};
  }
  SUBCASE("a file") {
    honest.items = {file_item("files/x", "good bytes", "share/x")};
    lying.items = {file_item("files/x", "evil bytes", "share/x")};
  }
  SUBCASE("a tree that is stored as it is") {
    honest.items = {tree_of(make_tar({{tar_file("a"), "good"}}))};
    lying.items = {tree_of(make_tar({{tar_file("a"), "evil"}}))};
    honest.items[0].encoding = lying.items[0].encoding = bundle::Encoding::Identity;
  }
  MadeBundle made = live.site.make(lying, "lying");
  made.manifest.entries[0].sha256 = made.manifest.entries[0].stored_sha256 =
      bundle::sha256(bundle::as_bytes(honest.items[0].bytes));
  reseal(made, made.manifest, live.site.key);
  live.site.apply(made);  // its chunks are the signed ones; what they were published as is for --deep to say
  bundle::Progress silent(nullptr);
  const Verification deep = verify_every_byte(bundle::open(made.folder), made.trusted, kNow, 2, silent, true);
  REQUIRE(deep.failures.size() == 1);
  CHECK(deep.failures[0].code() == ErrorCode::Digest);
  CHECK(mentions(deep.failures[0], made.manifest.entries[0].sha256.hex()));

  const MadeBundle good = live.site.make(honest, "honest");
  const Applied applied = live.site.apply(good);
  CHECK(applied.unpacked == std::vector<std::string>{honest.items[0].path});  // nothing of the liar's was reused
  CHECK(applied.reused.empty());
  const fs::path item = live.site.prefix().store() / bundle::store_item_name(good.manifest.entries[0]);
  CHECK(fs::exists(item));
  for (const auto& file : fs::recursive_directory_iterator(item))
    if (file.is_regular_file() && file.path().filename() != kRecordName)
      CHECK(read_file(file.path()).find("evil") == std::string::npos);
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
    const std::string before = "\"format\":2";
    REQUIRE(text.find(before) != std::string::npos);
    fs::permissions(path, fs::perms(0644));
    write_file(path, text.replace(text.find(before), before.size(), "\"format\":3"));
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
