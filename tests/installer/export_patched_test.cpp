// SPDX-License-Identifier: Apache-2.0
// Wheels that a delta carries as patches, exported as they were published: from the bundles that have what they build
// on, to the last byte, or not at all.
#include "installer/export/deflate.hpp"
#include "installer/export/export_bundle.hpp"
#include "installer/print/export_report.hpp"
#include "tests/installer/site.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

const bundle::Digest& content_of(const MadeBundle& made, const TinyWheel& wheel) {
  return made.manifest.find(bundle::SafePath::parse("wheels/" + wheel.file_name(), ""))->content;
}

TinyItem patch_of(const TinyWheel& wheel, const TinyWheel& base, const bundle::Digest& content) {
  TinyItem item = wheel_item(wheel);
  item.encoding = bundle::Encoding::Patch;
  item.patch = make_patch(wheel, base);
  item.built_on = content;
  REQUIRE(!item.patch.empty());
  return item;
}

// Three versions of a wheel: the first whole, each other one as a patch on the one before.
struct PatchedDesk : Site {
  TinyWheel one = with_library(60'000), two = with_changed_library(60'000), three = with_changed_library(60'000, "1.2");
  MadeBundle first, second, third;

  PatchedDesk() {
    first = make({.version = 1, .items = {wheel_item(one)}}, "first");
    second = make({.version = 2, .items = {patch_of(two, one, content_of(first, one))}}, "second");
    third = make({.version = 3, .items = {patch_of(three, two, content_of(second, two))}}, "third");
  }
  std::shared_ptr<const bundle::VerifiedBundle> verified(const MadeBundle& bundle) const {
    return std::make_shared<const bundle::VerifiedBundle>(
        bundle::verify(bundle::open(bundle.folder), bundle.trusted, kNow));
  }
  Exported run(const MadeBundle& delta, const std::vector<const MadeBundle*>& on, Disk& disk) const {
    VerifiedBundles bases;
    for (const MadeBundle* base : on) bases.push_back(verified(*base));
    bundle::Progress silent(nullptr);
    return export_bundle(*verified(delta), {.wheels = dir / "out", .models = {}, .debs = {}, .programs = {}}, 2, disk,
                         silent, bases);
  }
  Exported run(const MadeBundle& delta, const std::vector<const MadeBundle*>& on) const {
    Disk disk;
    return run(delta, on, disk);
  }
  fs::path file(const TinyWheel& wheel) const { return dir / "out" / wheel.file_name(); }
  void check_nothing_written() const { CHECK((!fs::exists(dir / "out") || fs::is_empty(dir / "out"))); }
};

}  // namespace

TEST_CASE("a patched wheel is exported as it was published, byte for byte, where its base is named") {
  const PatchedDesk desk;
  const Exported left = desk.run(desk.second, {});
  CHECK(left.folders[0].patched == std::vector<std::string>{"wheels/" + desk.two.file_name()});
  CHECK(left.folders[0].written.empty());
  CHECK(text_of(left).find("--base BUNDLE") != std::string::npos);
  CHECK((json_of(left)["folders"][0]["patched"][0] == "wheels/" + desk.two.file_name()));
  desk.check_nothing_written();

  const Exported made = desk.run(desk.second, {&desk.first});
  CHECK(made.folders[0].written == std::vector<std::string>{desk.two.file_name()});
  CHECK(made.folders[0].patched.empty());
  CHECK((read_file(desk.file(desk.two)) == make_wheel(desk.two)));
  CHECK(std::distance(fs::directory_iterator(desk.dir / "out"), {}) == 1);  // nothing else stays
  CHECK(desk.run(desk.second, {&desk.first}).folders[0].there.size() == 1);
}

TEST_CASE("a patch on a patch is exported where both bases are named, in any order, and on a disk without links") {
  const PatchedDesk desk;
  LinklessDisk linkless;
  desk.run(desk.third, {&desk.second, &desk.first}, linkless);
  CHECK((read_file(desk.file(desk.three)) == make_wheel(desk.three)));
  fs::remove(desk.file(desk.three));
  CHECK_REFUSED(desk.run(desk.third, {&desk.second}), Missing, content_of(desk.first, desk.one).hex());
  CHECK_REFUSED(desk.run(desk.third, {&desk.second}), Missing, "--base");
  CHECK_REFUSED(desk.run(desk.third, {&desk.first}), Missing, "not in tiny-1");
  desk.check_nothing_written();
}

TEST_CASE("a patch that makes another archive than was published is not exported") {
  PatchedDesk desk;
  // As a signer who lies would write it: the manifest promises another digest than the archive has.
  for (bundle::Entry& entry : desk.second.manifest.entries) entry.sha256 = bundle::sha256(bundle::as_bytes("other"));
  bundle::Manifest said = desk.second.manifest;
  desk.second.manifest = as_written(said);
  reseal(desk.second, {one_key_root(desk.key)}, {&desk.key});
  CHECK_REFUSED(desk.run(desk.second, {&desk.first}), Digest, "differs from the published one");
  desk.check_nothing_written();
}

TEST_CASE("a damaged base is refused, and so is a full disk, with nothing left under the wheel's name") {
  const PatchedDesk desk;
  FullDisk full(1000);
  CHECK_REFUSED(desk.run(desk.second, {&desk.first}, full), Space, "");
  desk.check_nothing_written();
  for (std::uint64_t at = 20'000; at < fs::file_size(desk.first.volume(0)); at += 4096)
    flip_bit(desk.first.volume(0), 8 * at);
  CHECK_REFUSED(desk.run(desk.second, {&desk.first}), Digest, "differs from what was signed");
  desk.check_nothing_written();
}

TEST_CASE("bytes that come in pieces of any size are compressed to the stream that one piece gives") {
  const std::string text = numbers_text(3, 60'000) + noise(90'000);
  std::string whole;
  Deflate once([&](bundle::ByteView piece) { whole += bundle::as_text(piece); });
  once.feed(bundle::as_bytes(text));
  once.finish();
  CHECK((whole == zip_format::deflate_raw(text)));
  for (const std::size_t size : {1u, 777u, 65536u}) {
    std::string pieces;
    Deflate many([&](bundle::ByteView piece) { pieces += bundle::as_text(piece); });
    for (std::size_t at = 0; at < text.size(); at += size)
      many.feed(bundle::as_bytes(std::string_view(text).substr(at, size)));
    many.finish();
    CHECK((pieces == whole));
  }
}
