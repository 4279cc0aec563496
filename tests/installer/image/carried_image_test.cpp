// SPDX-License-Identifier: Apache-2.0
// Bundles that carry their environment as one image: mounted where they lie, copied, made again and compared; and what
// is refused of one that is not what its manifest says.
#include <doctest/doctest.h>

#include "installer/image/carried_copy.hpp"
#include "installer/image/make_image.hpp"
#include "installer/preflight/published.hpp"
#include "tests/installer/host_python.hpp"
#include "tests/installer/mount/fuse_here.hpp"
#include "tests/support/shown_image.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

bundle::VerifiedBundle verified(const MadeBundle& made) {
  return bundle::verify(bundle::open(made.folder), made.trusted, kNow);
}

MadeImage image_of(const MadeBundle& made, ImageRequest request) {
  Disk disk;
  bundle::Progress silent(nullptr);
  request.threads = 2;
  return image_of_bundle(verified(made), request, disk, silent);
}

TinyBundle several_chunks() {
  TinyBundle tiny = three_kinds();
  for (int i = 0; i < 8; ++i)
    tiny.items.push_back(wheel_item({.name = "large" + std::to_string(i),
                                     .files = {{"large" + std::to_string(i) + "/__init__.py",
                                                numbers_text(static_cast<std::uint32_t>(i), 9000)}}}));
  return tiny;
}

// A site, a bundle that carries no image, and the same one with the image that it gives.
struct Carried {
  explicit Carried(TinyBundle plain = several_chunks()) {
    const MadeBundle without = site.make(plain, "without");
    made = image_of(without, {.file = site.dir / "made", .verity = true});
    tiny = plain;
    tiny.items.push_back({.path = "environment/image.sqfs",
                          .kind = bundle::EntryKind::Squashfs,
                          .bytes = read_file(made.file),
                          .placed = false,
                          .verity = *made.root});
    with = site.make(tiny, "with");
    fs::create_directory(folder);
  }
  ~Carried() {
    if (is_our_mount(folder)) run_in_shell("fusermount3 -uz " + folder.string());
  }
  // The same with another image, or another root hash.
  MadeBundle changed(const std::string& name, const std::function<void(TinyItem&)>& change) const {
    TinyBundle other = tiny;
    change(other.items.back());
    return site.make(other, name);
  }
  Outcome mount(const MadeBundle& bundle, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"mount", bundle.folder, folder, "--log", log, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(site.dir, words);
  }
  Outcome mount_trusted(const MadeBundle& bundle) { return mount(bundle, {"--fingerprint", bundle.fingerprint()}); }
  void refused(const MadeBundle& bundle, bundle::ErrorCode code, const std::string& text,
               const std::vector<std::string>& more) {
    const Outcome outcome = mount(bundle, more);
    INFO(outcome.err);
    CHECK(outcome.exit == static_cast<int>(code));
    CHECK(outcome.err.find(text) != std::string::npos);
    CHECK(!is_our_mount(folder));
  }

  Site site;
  TinyBundle tiny;
  MadeImage made;
  MadeBundle with;
  fs::path folder = site.dir / "shown", log = site.dir / "log";
};

}  // namespace

TEST_CASE("the image that a bundle carries is mounted where it lies, and shows what apply makes of the same bundle") {
  if (!fuse_is_there(true)) return;
  Carried carried;
  carried.site.apply(carried.with);
  const Outcome mounted = carried.mount_trusted(carried.with);
  INFO(mounted.err);
  REQUIRE(mounted.exit == 0);
  const bundle::Json said = bundle::parse_json(mounted.out, "stdout");
  CHECK(said.at("bundle") == "tiny version 1");
  CHECK(said.at("digest") == bundle::fingerprint_text(carried.with.manifest.payload.chunk_list_digest));
  CHECK(said.at("size") == carried.made.size);
  DiskImage expected = without_twins(read_image(carried.site.current()));
  CHECK(expected.erase("generation.json") == 1);
  CHECK((without_twins(read_image(carried.folder)) == expected));
  CHECK(run(carried.site.dir, {"unmount", carried.folder}).exit == 0);
  CHECK(ends(process_of(mounted)));
}

TEST_CASE("a container that a mounted bundle is bound into runs its programs") {
  if (!fuse_is_there(true)) return;
  const std::string container = "bwrap --unshare-all --ro-bind / / --tmpfs /opt ";
  if (run_in_shell(container + "true").status != 0) return left_out("this machine starts no container by bwrap");
  Carried carried;
  REQUIRE(carried.mount_trusted(carried.with).exit == 0);
  const Ran ran = run_in_shell(container + "--ro-bind " + carried.folder.string() + " /opt/env /opt/env/bin/alias");
  CHECK(ran.status == 0);
  CHECK(ran.output == "tool\n");
  CHECK(run(carried.site.dir, {"unmount", carried.folder}).exit == 0);
}

TEST_CASE("a bundle is mounted behind the gate: by nobody's word, another root's or a changed seal's it is not") {
  if (!fuse_is_there(true)) return;
  Carried carried;
  carried.refused(carried.with, bundle::ErrorCode::Signature, "no root is pinned", {});
  carried.refused(carried.with, bundle::ErrorCode::Usage, "--digest", {"--digest", "sha256:" + std::string(64, 'a')});
  const std::vector<std::string> trusted{"--fingerprint", carried.with.fingerprint()};
  carried.refused(carried.with, bundle::ErrorCode::Signature, "root",
                  {"--fingerprint", "sha256:" + std::string(64, 'a')});
  const std::string chunks = read_file(carried.with.chunks());
  write_file(carried.with.chunks(), chunks.substr(1) + "x");
  carried.refused(carried.with, bundle::ErrorCode::Digest, "chunk list", trusted);
  write_file(carried.with.chunks(), chunks);
  const std::string seal = read_file(carried.with.seal());
  write_file(carried.with.seal(), seal.substr(0, seal.size() - 40) + "A" + seal.substr(seal.size() - 39));
  const Outcome changed = carried.mount(carried.with, trusted);
  CHECK(changed.exit != 0);
  CHECK(!is_our_mount(carried.folder));
  write_file(carried.with.seal(), seal);
  const Outcome file = run(
      carried.site.dir, {"mount", carried.made.file, carried.folder, "--digest",
                         bundle::fingerprint_text(carried.made.digest), "--fingerprint", carried.with.fingerprint()});
  CHECK(file.exit == static_cast<int>(bundle::ErrorCode::Usage));
  CHECK(file.err.find("options that say which bundle is believed") != std::string::npos);
}

TEST_CASE("a bit that changes in a volume while its image is mounted is EIO, and a line with volume and offset") {
  if (!fuse_is_there(true)) return;
  Carried carried;
  REQUIRE(carried.mount(carried.with, {"--fingerprint", carried.with.fingerprint(), "--memory", "4096"}).exit == 0);
  const bundle::Entry& image = *carried.with.manifest.image();
  flip_bit(carried.with.volume(0), 8 * (image.offset + 20'000));
  int bad = 0, good = 0;
  for (const fs::directory_entry& there : fs::recursive_directory_iterator(carried.folder)) {
    if (!there.is_regular_file() || there.is_symlink()) continue;
    const std::string error = read_error(there.path());
    CHECK((error.empty() || error == "EIO"));
    (error.empty() ? good : bad) += 1;
  }
  CHECK(bad > 0);
  CHECK(good > 0);
  CHECK(read_file(carried.log).find("tiny-1.vol001 at offset " + std::to_string(image.offset + 16384)) !=
        std::string::npos);
  flip_bit(carried.with.volume(0), 8 * (image.offset + 20'000));
  for (const fs::directory_entry& there : fs::recursive_directory_iterator(carried.folder))
    if (there.is_regular_file() && !there.is_symlink()) CHECK(read_error(there.path()).empty());
  CHECK(run(carried.site.dir, {"unmount", carried.folder}).exit == 0);
}

TEST_CASE("an image that lies over several volumes in two folders is mounted, and a volume that is missing is named") {
  if (!fuse_is_there(true)) return;
  Carried carried;
  TinyBundle tiny = carried.tiny;
  tiny.volume_size = 64 << 10;
  const MadeBundle bundle = carried.site.make(tiny, "in-volumes");
  REQUIRE(bundle.manifest.payload.volumes.size() > 5);
  const fs::path elsewhere = carried.site.dir / "elsewhere";
  fs::create_directory(elsewhere);
  for (const std::size_t index : {1u, 3u}) {
    const fs::path volume = bundle.volume(index);
    fs::rename(volume, elsewhere / volume.filename());
  }
  const std::vector<std::string> trust{"--fingerprint", bundle.fingerprint()};
  carried.refused(bundle, bundle::ErrorCode::Missing, "tiny-1.vol002", trust);
  const Outcome mounted = carried.mount(bundle, {trust[0], trust[1], "--volumes", elsewhere});
  INFO(mounted.err);
  REQUIRE(mounted.exit == 0);
  carried.site.apply(carried.with);
  DiskImage expected = without_twins(read_image(carried.site.current()));
  CHECK(expected.erase("generation.json") == 1);
  CHECK((without_twins(read_image(carried.folder)) == expected));
  CHECK(run(carried.site.dir, {"unmount", carried.folder}).exit == 0);
}

TEST_CASE("what a medium has damaged of an image is mended while it is read, and said at the end") {
  if (!fuse_is_there(true)) return;
  Carried carried;
  TinyBundle tiny = carried.tiny;
  tiny.recovery = 50;
  const MadeBundle bundle = carried.site.make(tiny, "with-recovery");
  flip_bit(bundle.volume(0), 8 * (bundle.manifest.image()->offset + 20'000));
  const Outcome mounted = carried.mount_trusted(bundle);
  INFO(mounted.err);
  REQUIRE(mounted.exit == 0);
  for (const fs::directory_entry& there : fs::recursive_directory_iterator(carried.folder))
    if (there.is_regular_file() && !there.is_symlink()) CHECK(read_error(there.path()).empty());
  CHECK(run(carried.site.dir, {"unmount", carried.folder}).exit == 0);
  CHECK(ends(process_of(mounted)));
  CHECK(read_file(carried.log).find("mended while it was read: 1 chunk(s)") != std::string::npos);
}

TEST_CASE("what a bundle calls its image and is none is refused before anything is mounted") {
  if (!fuse_is_there(true)) return;
  Carried carried;
  const auto refused = [&](const std::string& name, const std::function<void(TinyItem&)>& change) {
    const MadeBundle bundle = carried.changed(name, change);
    carried.refused(bundle, bundle::ErrorCode::Format, "image.sqfs", {"--fingerprint", bundle.fingerprint()});
    CHECK_REFUSED(image_of(bundle, {.file = carried.site.dir / (name + "-copy")}), Format, "image.sqfs");
    CHECK(!fs::exists(carried.site.dir / (name + "-copy")));
  };
  refused("zeros", [](TinyItem& item) { item.bytes = std::string(8192, '\0'); });
  refused("cut", [](TinyItem& item) { item.bytes.resize(item.bytes.size() - 4096); });
}

TEST_CASE("image of a bundle that carries one copies it, and makes it again to the byte where that is asked") {
  Carried carried;
  for (const std::uint64_t chunk : {std::uint64_t{4096}, bundle::kDefaultChunkSize})
    for (const bundle::DigestAlgorithm digest : {bundle::DigestAlgorithm::Sha256, bundle::DigestAlgorithm::Sm3}) {
      const std::string name = std::to_string(chunk) + bundle::name_of(digest);
      TinyBundle tiny = carried.tiny;
      tiny.chunk_size = chunk;
      tiny.digest = digest;
      const MadeBundle bundle = carried.site.make(tiny, "with-" + name);
      const MadeImage copy = image_of(bundle, {.file = carried.site.dir / ("copy-" + name), .verity = true});
      const MadeImage again =
          image_of(bundle, {.file = carried.site.dir / ("again-" + name), .verity = true, .rebuild = true});
      for (const MadeImage& image : {copy, again}) {
        CHECK(image.carried);
        CHECK(read_file(image.file) == read_file(carried.made.file));
        CHECK(image.digest == carried.made.digest);
        CHECK(image.root == carried.made.root);
        CHECK(image.size == carried.made.size);
        CHECK(image.bytes == carried.made.bytes);
        CHECK(image.files == carried.made.files);
        CHECK(image.folders == carried.made.folders);
        CHECK(image.links == carried.made.links);
      }
    }
  CHECK(!carried.made.carried);
}

TEST_CASE("an image that is another one than is carried, or has another root hash than was signed, is not left") {
  Carried carried;
  const fs::path file = carried.site.dir / "image";
  const auto nothing_is_left = [&] {
    for (const char* end : {"", ".chunks", ".verity"}) CHECK(!fs::exists(file.string() + end));
  };
  const MadeBundle other = carried.changed("other", [](TinyItem& item) {
    item.bytes[item.bytes.size() / 2] = static_cast<char>(item.bytes[item.bytes.size() / 2] ^ 1);
  });
  CHECK_REFUSED(image_of(other, {.file = file, .rebuild = true}), Digest, "differs from the carried one");
  nothing_is_left();
  const MadeBundle root =
      carried.changed("root", [](TinyItem& item) { item.verity = bundle::sha256(bundle::as_bytes("another")); });
  CHECK_REFUSED(image_of(root, {.file = file, .verity = true}), Digest, "root hash");
  CHECK_REFUSED(image_of(root, {.file = file, .verity = true, .rebuild = true}), Digest, "root hash");
  nothing_is_left();
  CHECK(image_of(root, {.file = file}).carried);  // its bytes are the signed ones
  const MadeBundle none = carried.site.make(several_chunks(), "none");
  CHECK_REFUSED(image_of(none, {.file = carried.site.dir / "x", .rebuild = true}), Usage, "leave --rebuild out");
  Disk disk;
  bundle::Progress silent(nullptr);
  SmallDisk full({.bytes = carried.made.size - 1, .inodes = 1000});
  CHECK_REFUSED(image_of_bundle(verified(carried.with), {.file = carried.site.dir / "x"}, full, silent), Space,
                "sealift-install mount BUNDLE DIR");
}

TEST_CASE("a wrong root hash is found by the check of what was published") {
  Carried carried;
  bundle::Progress silent(nullptr);
  CHECK(check_published(verified(carried.with), 2, silent).empty());
  const MadeBundle root =
      carried.changed("root", [](TinyItem& item) { item.verity = bundle::sha256(bundle::as_bytes("another")); });
  const std::vector<bundle::Error> errors = check_published(verified(root), 2, silent);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].code() == bundle::ErrorCode::Digest);
  CHECK(mentions(errors[0], "root hash"));
}

TEST_CASE("a bundle that carries its image alone is mounted and copied, and apply says so") {
  Carried carried;
  TinyBundle tiny = carried.tiny;
  tiny.version = 2;
  for (TinyItem& item : tiny.items) item.absent = item.kind != bundle::EntryKind::Squashfs;
  MadeBundle alone = carried.site.make(tiny, "alone");
  alone.manifest.base.reset();
  reseal(alone, {one_key_root(carried.site.key)}, {&carried.site.key});
  REQUIRE(carries_image_alone(verified(alone).manifest()));
  CHECK(image_of(alone, {.file = carried.site.dir / "copy"}).carried);
  CHECK(read_file(carried.site.dir / "copy") == read_file(carried.made.file));
  CHECK_REFUSED(image_of(alone, {.file = carried.site.dir / "again", .rebuild = true}), Missing, "leave --rebuild out");
  for (const bool dry_run : {true, false}) {
    CHECK_REFUSED(carried.site.apply(alone, dry_run), Missing,
                  "sealift-install mount " + alone.folder.string() + " DIR");
    CHECK(!fs::exists(carried.site.current()));
  }
  const Outcome checked = run(carried.site.dir, {"verify", alone.folder, "--fingerprint", alone.fingerprint()});
  INFO(checked.err);
  CHECK(checked.exit == 0);
  CHECK(checked.out.find("of them not carried") != std::string::npos);
  if (fuse_is_there(true)) {
    const Outcome mounted = carried.mount_trusted(alone);
    INFO(mounted.err);
    REQUIRE(mounted.exit == 0);
    CHECK(run_in_shell((carried.folder / "bin/tool").string()).output == "tool\n");
    CHECK(run(carried.site.dir, {"unmount", carried.folder}).exit == 0);
  }
  carried.site.apply(carried.with);  // whose store then has all that the other lists
  CHECK(carried.site.apply(alone).unpacked.empty());
}

TEST_CASE("apply, plan, status, inventory and export of a bundle with an image do as without it") {
  Carried carried;
  const Applied applied = carried.site.apply(carried.with);
  CHECK(applied.record.value().entries.size() == carried.with.manifest.environment.placements.size());
  for (const fs::directory_entry& item : fs::directory_iterator(carried.site.prefix().store()))
    CHECK(item.path().string().find(bundle::store_item_name(*carried.with.manifest.image())) == std::string::npos);
  const std::vector<std::string> trust{"--fingerprint", carried.with.fingerprint()};
  const auto json = [&](std::vector<std::string> words) {
    words.push_back("--json");
    const Outcome outcome = run(carried.site.dir, words);
    INFO(outcome.err);
    CHECK(outcome.exit == 0);
    return bundle::parse_json(outcome.out, "stdout");
  };
  const bundle::Json checked = json({"verify", carried.with.folder, trust[0], trust[1]});
  CHECK(checked.at("entries") == carried.with.manifest.entries.size());
  const std::string prefix = carried.site.prefix().folder().string();
  CHECK(json({"status", "--prefix", prefix}).at("generations").size() == 1);
  const fs::path out = carried.site.dir / "exported";
  json({"export", carried.with.folder, trust[0], trust[1], "--wheels", out});
  for (const fs::directory_entry& file : fs::directory_iterator(out)) CHECK(file.path().extension() == ".whl");
}
