// SPDX-License-Identifier: Apache-2.0
// What diff says of two bundles, of two locks, and of a bundle and the lock it was made of.
#include "packager/compare/diff.hpp"

#include <doctest/doctest.h>

#include "bundle/core/json.hpp"
#include "packager/compare/inspect.hpp"
#include "packager/host/process.hpp"
#include "packager/lock/lock.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;

namespace {

TinyItem item(const std::string& path, const std::string& bytes) {
  return {.path = path, .bytes = bytes, .into = path};
}
TinyItem wheel(const std::string& name, const std::string& version, const std::string& text = "x = 1\n") {
  return wheel_item({.name = name, .version = version, .files = {{name + ".py", text}}});
}
TinyItem interpreter(const std::string& version, const std::string& bytes) {
  return {.path = "python/cpython-" + version + ".tar",
          .kind = bundle::EntryKind::Tree,
          .bytes = make_tar({{tar_file("bin/python3", true), bytes}})};
}

// Version 1 and version 2 of one environment.
struct Pair {
  TempDir dir;
  MadeBundle one, two;

  Pair() {
    TinyBundle tiny{.imports = {"demo"}};
    tiny.items = {wheel("demo", "1.0"),       wheel("gone", "3"),       wheel("same", "1"),
                  wheel("rebuilt", "1", "a"), item("data/set", "0123"), interpreter("3.11.2", "p")};
    one = make_bundle(dir / "tiny-1", tiny);
    tiny.version = 2;
    tiny.glibc = {2, 28};
    tiny.imports = {"demo", "fresh"};
    tiny.items = {wheel("demo", "1.1"),       wheel("fresh", "5"),       wheel("same", "1"),
                  wheel("rebuilt", "1", "b"), item("data/set", "01234"), interpreter("3.11.9", "q")};
    two = make_bundle(dir / "tiny-2", tiny);
  }
  Diff compare() const { return diff(read_diff_side(one.folder), read_diff_side(two.seal())); }
};

const Diff::Item* find(const Diff& diff, const std::string& name) {
  for (const Diff::Item& item : diff.items)
    if (item.name == name) return &item;
  return nullptr;
}

Lock lock_of(const bundle::Manifest& manifest) {
  Lock lock{.name = manifest.name,
            .version = manifest.version,
            .channel = manifest.channel,
            .created = manifest.created,
            .target = manifest.target,
            .glibc_floor = manifest.glibc_floor,
            .python = "3",
            .imports = manifest.environment.imports};
  for (const bundle::Entry& entry : manifest.entries) {
    const std::string path = entry.path.text();
    const std::string file = path.substr(path.find('/') + 1);
    if (path.starts_with("wheels/")) {
      const auto name = bundle::parse_wheel_name(file);
      lock.wheels.push_back({.name = name->name,
                             .version = name->version,
                             .file_name = file,
                             .url = "https://example.invalid/" + file,
                             .sha256 = entry.sha256});
    } else if (path.starts_with("python/")) {
      lock.interpreter = {.description = "CPython", .version = "3.11.2", .sha256 = entry.sha256, .size = entry.size};
    }
  }
  return lock;
}

}  // namespace

TEST_CASE("diff lists what was added, removed and changed, with versions and sizes, and counts what is the same") {
  const Diff found = Pair().compare();
  CHECK(found.before == "tiny-1");
  CHECK(found.after == "tiny-2");
  CHECK(found.items.size() == 6);
  CHECK(found.same == 1);
  REQUIRE(find(found, "wheel demo") != nullptr);
  CHECK(find(found, "wheel demo")->before->version == "1.0");
  CHECK(find(found, "wheel demo")->after->version == "1.1");
  REQUIRE(find(found, "wheel gone") != nullptr);
  CHECK_FALSE(find(found, "wheel gone")->after);
  REQUIRE(find(found, "wheel fresh") != nullptr);
  CHECK_FALSE(find(found, "wheel fresh")->before);
  REQUIRE(find(found, "data/set") != nullptr);
  CHECK(find(found, "data/set")->before->size == 4);
  CHECK(find(found, "data/set")->after->size == 5);
  REQUIRE(find(found, "interpreter") != nullptr);
  CHECK(find(found, "interpreter")->after->version == "3.11.9");
  const std::string text = diff_text(found);
  INFO(text);
  CHECK(text.starts_with("tiny-1 -> tiny-2\n"));
  CHECK(text.find("  + wheel fresh  5, ") != text.npos);
  CHECK(text.find("  - wheel gone  3, ") != text.npos);
  CHECK(text.find("  * data/set  4 B -> 5 B\n") != text.npos);
  CHECK(text.find("  * wheel rebuilt  1, ") != text.npos);
  CHECK(text.find("other bytes") != text.npos);
  CHECK(text.find("1 added, 1 removed, 4 changed, 1 the same") != text.npos);
  CHECK(text.find("wheel same") == text.npos);
}

TEST_CASE("diff says what changed of target and environment") {
  const std::string text = diff_text(Pair().compare());
  CHECK(text.find("  target.glibc  2.17 -> 2.28\n") != text.npos);
  CHECK(text.find("  imports  demo -> demo, fresh\n") != text.npos);
  CHECK(text.find("  version  1 -> 2\n") != text.npos);
  CHECK(text.find("channel") == text.npos);
}

TEST_CASE("diff as JSON holds the same, by name") {
  const bundle::Json json = diff_json(Pair().compare());
  CHECK(json["facts"]["target.glibc"]["after"] == "2.28");
  CHECK(json["added"].size() == 1);
  CHECK(json["added"]["wheel fresh"]["version"] == "5");
  CHECK(json["removed"].contains("wheel gone"));
  CHECK(json["changed"]["wheel demo"]["before"]["version"] == "1.0");
  CHECK(json["changed"]["data/set"]["after"]["size"] == 5);
  CHECK(json["same"] == 1);
}

TEST_CASE("a bundle and the lock that it was made of are the same") {
  const TempDir dir;
  TinyBundle tiny{.imports = {"demo"}};
  tiny.items = {wheel("demo", "1.0"), interpreter("3.11.2", "p")};
  const MadeBundle made = make_bundle(dir / "tiny-1", tiny);
  Lock lock = lock_of(made.manifest);
  write_file(dir / "a.lock.toml", write_lock(lock, dir.path()));
  const DiffSide bundle_side = read_diff_side(made.folder), lock_side = read_diff_side(dir / "a.lock.toml");
  CHECK(diff_text(diff(bundle_side, lock_side)) ==
        "tiny-1 -> tiny-1\n0 added, 0 removed, 0 changed, 2 the same; 0 B new, 0 B gone\n");
  lock.target.driver = "580.65.06";
  lock.target.gpus = {"8 x NVIDIA H200"};
  lock.programs = {{.source = dir / "run", .sha256 = bundle::sha256({}), .size = 9, .into = "bin/run"}};
  write_file(dir / "b.lock.toml", write_lock(lock, dir.path()));
  const std::string text = diff_text(diff(lock_side, read_diff_side(dir / "b.lock.toml")));
  CHECK(text.find("  target.driver  (none) -> 580.65.06\n") != text.npos);
  CHECK(text.find("  target.gpus  (none) -> 8 x NVIDIA H200\n") != text.npos);
  CHECK(text.find("  + programs/bin/run  9 B\n") != text.npos);
}

TEST_CASE("diff refuses what is neither a bundle nor a lock, and a bundle whose signature does not hold") {
  Pair pair;
  CHECK_REFUSED(read_diff_side(pair.dir / "gone.lock.toml"), Missing, "gone.lock.toml");
  write_file(pair.dir / "job.toml", "name = \"x\"\n");
  CHECK_REFUSED(read_diff_side(pair.dir / "job.toml"), Format, "format");
  bundle::Seal seal = bundle::parse_seal(read_file(pair.one.seal()), "seal");
  std::string& manifest = seal.manifest.payload;
  manifest.replace(manifest.find("\"test\""), 6, "\"best\"");
  write_file(pair.one.seal(), bundle::write_seal(seal));
  CHECK_REFUSED(read_diff_side(pair.one.folder), Signature, "does not hold");
}

TEST_CASE("sealift-pack diff ends with 0 whether or not there is a difference") {
  const Pair pair;
  const ProcessResult differ =
      run_process({SEALIFT_PACK, "diff", pair.one.folder.string(), pair.two.folder.string(), "--json"});
  CHECK(differ.exit_code == 0);
  CHECK(bundle::parse_json(differ.out.substr(0, differ.out.size() - 1), "diff")["added"].size() == 1);
  CHECK(run_process({SEALIFT_PACK, "diff", pair.one.folder.string(), pair.one.folder.string()}).exit_code == 0);
  CHECK(run_process({SEALIFT_PACK, "diff", pair.one.folder.string(), (pair.dir / "gone").string()}).exit_code == 7);
}

TEST_CASE("inspect names the wheels that the packer built, and whether in a sandbox") {
  const TempDir dir;
  TinyBundle tiny{.items = {wheel_item({.name = "one"}), wheel_item({.name = "two"}), wheel_item({.name = "three"})}};
  tiny.items[0].build = bundle::WheelBuild::Sandboxed;
  tiny.items[1].build = bundle::WheelBuild::Unsandboxed;
  const InspectReport report = inspect(make_bundle(dir / "tiny-1", tiny).folder, std::nullopt);
  const std::string text = inspect_text(report);
  CHECK(text.find("built      one-1.0-py3-none-any.whl, by its packer from source, in a sandbox\n") != text.npos);
  CHECK(text.find("built      two-1.0-py3-none-any.whl, by its packer from source, outside of a sandbox\n") !=
        text.npos);
  CHECK(text.find("built      three") == text.npos);
  CHECK(inspect_json(report)["manifest"]["entries"][2]["built"] == "unsandboxed");
}

TEST_CASE("inspect sums entries by kind and names the largest first") {
  const TempDir dir;
  TinyBundle tiny;
  tiny.items = {
      wheel("demo", "1.0"),
      item("data/large", std::string(5000, 'l')),
      item("data/small", "s"),
      {.path = "data/packed", .bytes = std::string(9000, 'z'), .into = "p", .encoding = bundle::Encoding::Zstd}};
  const MadeBundle made = make_bundle(dir / "tiny-1", tiny);
  const std::string text = inspect_text(inspect(made.folder, std::nullopt));
  INFO(text);
  CHECK(text.find("files      3, 14.0 kB, stored as 5.0 kB\n") != text.npos);
  CHECK(text.find("wheels     1, ") != text.npos);
  const std::size_t largest = text.find("largest\n");
  REQUIRE(largest != text.npos);
  CHECK(text.find("data/large", largest) < text.find("wheels/demo", largest));
  CHECK(text.find("target     x86_64, glibc 2.17 or newer (carried files need 2.17)") != text.npos);
}
