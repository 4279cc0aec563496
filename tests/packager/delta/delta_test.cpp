// SPDX-License-Identifier: Apache-2.0
// Deltas: what the target has is listed and not carried, and what changed may travel as a patch.
#include "packager/delta/delta.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "packager/compare/diff.hpp"
#include "packager/compare/inspect.hpp"
#include "packager/pack/recut.hpp"
#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::add_key, sealift::test::next_root, sealift::test::one_key_root, sealift::test::signed_document,
    sealift::test::signed_root;
using sealift::test::files_of;
using sealift::test::pinned_root;
using sealift::test::read_file;
using sealift::test::TinyWheel;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

TEST_CASE("with an inventory a bundle lists what the target has and carries the rest") {
  Workshop workshop;
  workshop.add_wheel({.name = "more", .files = {{"more/__init__.py", "MORE = 1\n"}}});
  const CreateResult whole = workshop.pack("whole");
  bundle::Inventory inventory{.generations = {{.name = "demo", .channel = "test", .version = 0}}, .items = {}};
  for (const bundle::Entry& entry : whole.manifest.entries)
    if (entry.path.text().find("more") == std::string::npos) inventory.items.insert(bundle::store_item_name(entry));
  const fs::path file = workshop.dir / "site.inventory";
  write_file(file, bundle::write_inventory(inventory));
  const CreateResult result = workshop.pack("delta", 0, file);
  CHECK(result.manifest.base == bundle::inventory_digest(inventory));
  CHECK(result.manifest.payload.size < whole.manifest.payload.size);
  REQUIRE(result.manifest.entries.size() == whole.manifest.entries.size());
  for (std::size_t i = 0; i < result.manifest.entries.size(); ++i) {
    const bundle::Entry &listed = result.manifest.entries[i], &carried = whole.manifest.entries[i];
    CHECK(listed.path == carried.path);
    CHECK(listed.sha256 == carried.sha256);
    CHECK(listed.installed_size == carried.installed_size);
    CHECK(listed.absent == (listed.path.text().find("more") == std::string::npos));
  }
  CHECK(result.manifest.environment == whole.manifest.environment);
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(result.folder), pinned_root(workshop), bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 2).empty());
  CHECK(files_of(workshop.pack("again", 0, file).folder) == files_of(result.folder));

  const std::string text = inspect_text(inspect(result.folder, std::nullopt));
  CHECK(text.find("absent     3, ") != std::string::npos);
  CHECK(text.find("sha256:" + result.manifest.base->hex()) != std::string::npos);
  CHECK(text.find("    absent  wheel  wheels/demo-1.0-py3-none-any.whl") != std::string::npos);
  const Diff changed = diff(read_diff_side(whole.folder), read_diff_side(result.folder));
  CHECK(changed.items.empty());
  REQUIRE(changed.facts.size() == 1);
  CHECK(changed.facts[0].name == "base");
  bundle::Progress progress(nullptr);
  const RecutResult cut = recut({.bundle = result.folder,
                                 .fingerprint = *pinned_root(workshop).state.pinned,
                                 .keys = {workshop.dir / "release.key"},
                                 .passphrase = {},
                                 .out = workshop.dir / "cut",
                                 .volume_size = std::uint64_t{5} << 20},
                                progress);
  CHECK(cut.manifest == result.manifest);
}

TEST_CASE("a delta made from the bundle that was sent last is, byte for byte, the one made from its inventory") {
  Workshop workshop;
  const CreateResult sent = workshop.pack("sent");
  bundle::Inventory inventory{.generations = {{.name = "demo",
                                               .channel = "test",
                                               .version = 1,
                                               .identity = bundle::open(sent.folder).seal.manifest.digest()}},
                              .items = {}};
  for (const bundle::Entry& entry : sent.manifest.entries) inventory.items.insert(bundle::store_item_name(entry));
  CHECK(inventory_of_bundle(sent.folder, *pinned_root(workshop).state.pinned) == inventory);
  write_file(workshop.dir / "site.inventory", bundle::write_inventory(inventory));

  workshop.lock.version = 2;
  workshop.add_wheel({.name = "more", .files = {{"more/__init__.py", "MORE = 1\n"}}});
  const CreateResult asked = workshop.pack("asked", 0, workshop.dir / "site.inventory");
  const CreateResult kept = workshop.pack("kept", 0, sent.folder);
  CHECK(kept.manifest.base == bundle::inventory_digest(inventory));
  CHECK(std::count_if(kept.manifest.entries.begin(), kept.manifest.entries.end(),
                      [](const bundle::Entry& entry) { return !entry.absent; }) == 1);
  CHECK(files_of(kept.folder) == files_of(asked.folder));

  // Seal and chunk list are enough to keep, and a delta is a base as well.
  fs::create_directories(workshop.dir / "shelf");
  for (const fs::directory_entry& file : fs::directory_iterator(sent.folder))
    if (file.path().extension() == ".seal" || file.path().extension() == ".chunks")
      fs::copy(file.path(), workshop.dir / "shelf");
  CHECK(files_of(workshop.pack("by-seal", 0, workshop.dir / "shelf/demo-1.seal").folder) == files_of(asked.folder));
  workshop.lock.version = 3;
  const CreateResult third = workshop.pack("third", 0, kept.folder);
  CHECK(std::all_of(third.manifest.entries.begin(), third.manifest.entries.end(),
                    [](const bundle::Entry& entry) { return entry.absent; }));
}

TEST_CASE("a wheel that changed travels as a patch on the one that was sent, and the next delta builds on that") {
  Workshop workshop;
  const std::size_t size = 300'000;
  workshop.add_wheel(test::with_library(size));
  const CreateResult sent = workshop.pack("sent");
  const auto next = [&](const TinyWheel& wheel) {
    ++workshop.lock.version;
    workshop.lock.wheels.pop_back();
    workshop.add_wheel(wheel);
  };
  next(test::with_changed_library(size));
  const fs::path path = "wheels/" + test::with_changed_library(size).file_name();
  const auto entry_of = [](const CreateResult& result, const fs::path& name) {
    return *result.manifest.find(bundle::SafePath::parse(name.string(), ""));
  };
  const bundle::Entry older = entry_of(sent, "wheels/" + test::with_library().file_name());
  const CreateResult whole = workshop.pack("whole", 0, sent.folder);
  const CreateResult delta = workshop.pack("delta", 0, sent.folder, nullptr, true);
  const bundle::Entry patch = entry_of(delta, path);
  CHECK(patch.encoding == bundle::Encoding::Patch);
  CHECK(patch.base == older.content);
  CHECK(patch.sha256 == entry_of(whole, path).sha256);
  CHECK(patch.stored_size < 4000);
  CHECK(delta.manifest.payload.size < 20'000);
  CHECK(whole.manifest.payload.size > size);
  CHECK(delta.manifest.installer_level == 5);
  CHECK(files_of(workshop.pack("again", 0, sent.folder, nullptr, true).folder) == files_of(delta.folder));
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(delta.folder), pinned_root(workshop), bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 1).empty());
  for (const fs::directory_entry& left : fs::directory_iterator(workshop.cache()))
    CHECK(left.path().string().find("patches") == std::string::npos);

  // Unchanged, it is left out under the patch's name; changed again, it is a patch on the patch.
  ++workshop.lock.version;
  const bundle::Entry same = entry_of(workshop.pack("same", 0, delta.folder), path);
  CHECK(same.absent);
  CHECK(same.content == patch.content);
  next(test::with_changed_library(size, "1.2"));
  const bundle::Entry third = entry_of(workshop.pack("third", 0, delta.folder, nullptr, true),
                                       "wheels/" + test::with_changed_library(size, "1.2").file_name());
  CHECK(third.encoding == bundle::Encoding::Patch);
  CHECK(third.base == patch.content);

  // Without the wheel that was sent there is nothing to make a patch of: it is carried whole.
  fs::remove(Cache(workshop.cache()).path(patch.sha256));
  const CreateResult fallback = workshop.pack("fallback", 0, delta.folder, nullptr, true);
  CHECK(entry_of(fallback, "wheels/" + test::with_changed_library(size, "1.2").file_name()).encoding ==
        bundle::Encoding::Identity);
}

TEST_CASE("patches need the bundle that was sent, and a wheel that has little in common with it is carried whole") {
  Workshop workshop;
  CHECK_REFUSED(workshop.pack("bad", 0, {}, nullptr, true), Usage, "--base");
  const fs::path file = workshop.dir / "site.inventory";
  write_file(file, bundle::write_inventory({.generations = {}, .items = {std::string(64, '0')}}));
  CHECK_REFUSED(workshop.pack("bad", 0, file, nullptr, true), Usage, "an inventory");
  workshop.add_wheel({.name = "other", .files = {{"other.py", "A = '" + test::noise(3000) + "'\n"}}});
  const CreateResult sent = workshop.pack("sent");
  ++workshop.lock.version;
  workshop.lock.wheels.pop_back();
  workshop.add_wheel({.name = "other", .version = "2.0", .files = {{"new.py", test::noise(9000).substr(4000)}}});
  const CreateResult delta = workshop.pack("delta", 0, sent.folder, nullptr, true);
  CHECK(delta.manifest.find(bundle::SafePath::parse("wheels/other-2.0-py3-none-any.whl", ""))->encoding ==
        bundle::Encoding::Identity);
  CHECK(delta.manifest.installer_level == 2);
}

TEST_CASE("a base bundle is verified by the roots that travel along, and may be signed under an older one of them") {
  Workshop workshop;
  const CreateResult sent = workshop.pack("sent");
  workshop.lock.version = 2;
  const fs::path chunks = sent.folder / "demo-1.chunks";
  const std::string list = read_file(chunks);
  std::string changed = list;
  changed[0] ^= 1;
  fs::remove(chunks), write_file(chunks, changed);
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Digest, "chunk list");
  fs::remove(chunks);
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Missing, "demo-1.chunks");
  write_file(chunks, list);

  const Workshop stranger;
  bundle::Seal seal = bundle::open(sent.folder).seal;
  const auto seal_as = [&](const bundle::Seal& other) {
    fs::remove(sent.folder / "demo-1.seal");
    write_file(sent.folder / "demo-1.seal", bundle::write_seal(other));
  };
  seal_as({.roots = {one_key_root(stranger.key)},
           .manifest = signed_document(seal.manifest.payload, {&stranger.key}, bundle::kBundlePayloadType)});
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Signature, "root");
  seal_as({.roots = seal.roots,
           .manifest = signed_document(seal.manifest.payload, {&stranger.key}, bundle::kBundlePayloadType)});
  CHECK_REFUSED(workshop.pack("bad", 0, sent.folder), Signature, "release");
  CHECK_FALSE(fs::exists(workshop.dir / "bad"));
  seal_as(seal);

  const bundle::PrivateKey fresh = bundle::PrivateKey::generate();
  bundle::Root next = next_root(bundle::parse_root(seal.roots[0].payload, ""));
  next.roles["release"].keys.clear();
  add_key(next, "release", fresh.public_key());
  write_file(workshop.dir / "root.2.json", write_envelope(signed_root(next, {&workshop.key})));
  bundle::write_text(workshop.dir / "fresh.key", fresh.pem(), 0600);
  workshop.pack("unused");
  bundle::Progress progress(nullptr);
  const CreateResult delta = create({.lock = workshop.dir / "demo.lock.toml",
                                     .roots = {workshop.dir / "root.1.json", workshop.dir / "root.2.json"},
                                     .keys = {workshop.dir / "fresh.key"},
                                     .out = workshop.dir / "rotated",
                                     .cache = workshop.cache(),
                                     .installer = workshop.dir / "sealift-install",
                                     .base = sent.folder,
                                     .fetch = {.jobs = 2}},
                                    progress);
  CHECK(delta.manifest.base);
}

TEST_CASE("an inventory that has nothing of the bundle makes no delta, and a damaged one no bundle") {
  Workshop workshop;
  const fs::path file = workshop.dir / "site.inventory";
  write_file(file, bundle::write_inventory({.generations = {}, .items = {std::string(64, '0')}}));
  const bundle::Manifest manifest = workshop.pack("whole", 0, file).manifest;
  CHECK_FALSE(manifest.base);
  CHECK(manifest.installer_level == 1);
  std::string text = read_file(file);
  text[text.find("000") + 1] = '1';
  write_file(file, text);
  CHECK_REFUSED(workshop.pack("bad", 0, file), Digest, "changed on its way");
  CHECK_REFUSED(workshop.pack("bad", 0, workshop.dir / "none"), Missing, "none");
  CHECK_FALSE(fs::exists(workshop.dir / "bad"));
}
