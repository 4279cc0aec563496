// SPDX-License-Identifier: Apache-2.0
// Plain files out of a bundle: what comes out is what went in, nothing unverified has a name, nothing is replaced, and
// no name leads out of its folder.
#include "installer/export/export_bundle.hpp"

#include <optional>
#include <set>
#include <thread>

#include "bundle/core/json.hpp"
#include "installer/disk/nameless_folder.hpp"
#include "tests/installer/site.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

const std::string weights = numbers_text(7, 3000), config = "{\"model_type\": \"tiny\"}\n";
const std::string snapshot_folder = "hub/models--org--name/snapshots/" + std::string(40, 'a') + "/";

TinyItem stored(const std::string& path, const std::string& bytes, bundle::Encoding encoding = {}) {
  return {.path = "files/" + path, .bytes = bytes, .into = path, .encoding = encoding};
}

// Each kind, a model in both layouts, and what nobody exports as a file: a tree, refs, the variables.
TinyBundle full() {
  TinyBundle tiny{.volume_size = 16384};
  tiny.items = {wheel_item({}),
                wheel_item({.name = "more", .files = {{"more/numbers.py", numbers_text(1, 2000)}}}),
                stored("models/name/config.json", config, bundle::Encoding::Zstd),
                stored("models/name/model.safetensors", weights),
                stored(snapshot_folder + "config.json", config, bundle::Encoding::Zstd),
                stored(snapshot_folder + "onnx/model.onnx", weights),
                stored("hub/models--org--name/refs/main", std::string(40, 'a')),
                stored("hub/datasets--org--texts/snapshots/bb/train.txt", "text\n"),
                stored("modelscope/models/org--scope/snapshots/master/sub/w.bin", "w\n"),
                stored("modelscope/datasets/org--rows/snapshots/v1/a.txt", "a\n"),
                stored("data/corpus/a.txt", "corpus\n"),
                stored("apt/Packages", "Package: tool\n"),
                stored("apt/tool_1.0_amd64.deb", numbers_text(3, 900)),
                stored("rpm/repodata/repomd.xml", "<repomd/>\n"),
                stored("rpm/keys.asc", "key\n"),
                stored("rpm/tool-1.0-1.noarch.rpm", numbers_text(4, 900)),
                tree_item("trees/python.tar", {{tar_file("bin/tool", true), "tool\n"}}),
                {.path = "programs/bin/uv", .bytes = "#!/bin/sh\n", .into = "bin/uv", .executable = true},
                {.path = "environment/variables", .bytes = "A=1\n", .into = "variables"}};
  return tiny;
}

struct Desk : Site {
  ExportFolders folders{.wheels = dir / "out/wheels",
                        .models = dir / "out/models",
                        .debs = dir / "out/debs",
                        .rpms = dir / "out/rpms",
                        .programs = dir / "out/programs"};

  Exported run(const MadeBundle& made, const ExportFolders& to, Disk& disk) const {
    bundle::Progress silent(nullptr);
    return export_bundle(bundle::verify(bundle::open(made.folder), made.trusted, kNow), to, 3, disk, silent);
  }
  Exported run(const MadeBundle& made, const ExportFolders& to) const {
    Disk disk;
    return run(made, to, disk);
  }
  Exported run(const MadeBundle& made) const { return run(made, folders); }

  // Each file below out/, with its bytes; scratch folders and links are there to be seen, too.
  std::map<std::string, std::string> found() const {
    std::map<std::string, std::string> files;
    if (!fs::exists(dir / "out")) return files;
    for (const fs::directory_entry& one : fs::recursive_directory_iterator(dir / "out"))
      if (!fs::is_directory(one.symlink_status()) || one.path().filename().string().starts_with("."))
        files[one.path().lexically_relative(dir / "out")] =
            fs::is_regular_file(one.symlink_status()) ? read_file(one.path()) : "?";
    return files;
  }
};

std::map<std::string, std::string> expected() {
  return {{"wheels/demo-1.0-py3-none-any.whl", make_wheel({})},
          {"wheels/more-1.0-py3-none-any.whl",
           make_wheel({.name = "more", .files = {{"more/numbers.py", numbers_text(1, 2000)}}})},
          {"models/name/config.json", config},
          {"models/name/model.safetensors", weights},
          {"models/org/name/config.json", config},
          {"models/org/name/onnx/model.onnx", weights},
          {"models/data/org/texts/train.txt", "text\n"},
          {"models/org/scope/sub/w.bin", "w\n"},
          {"models/data/org/rows/a.txt", "a\n"},
          {"models/data/corpus/a.txt", "corpus\n"},
          {"debs/Packages", "Package: tool\n"},
          {"debs/tool_1.0_amd64.deb", numbers_text(3, 900)},
          {"rpms/repodata/repomd.xml", "<repomd/>\n"},
          {"rpms/keys.asc", "key\n"},
          {"rpms/tool-1.0-1.noarch.rpm", numbers_text(4, 900)},
          {"programs/bin/uv", "#!/bin/sh\n"}};
}

// The byte of the payload at which this entry begins, as volume and offset.
std::pair<std::size_t, std::uint64_t> begin_of(const MadeBundle& made, const std::string& path) {
  std::uint64_t at = made.manifest.find(bundle::SafePath::parse(path, ""))->offset;
  std::size_t volume = 0;
  while (at >= made.manifest.payload.volumes[volume].size) at -= made.manifest.payload.volumes[volume++].size;
  return {volume, at};
}

}  // namespace

TEST_CASE("what export writes is what went in, under the names that others know, and nothing else") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  const Exported exported = desk.run(made);
  CHECK(desk.found() == expected());
  CHECK((status_of_path(desk.dir / "out/programs/bin/uv").st_mode & 07777) == 0755);
  CHECK((status_of_path(desk.dir / "out/debs/Packages").st_mode & 07777) == 0644);
  CHECK(status_of_path(desk.dir / "out/debs/Packages").st_nlink == 1);
  REQUIRE(exported.folders.size() == 5);
  CHECK(exported.folders[1].written.size() == 8);
  CHECK(!fs::exists(desk.prefix().folder()));
}

TEST_CASE("only the folders that are named are written, and none is a usage error") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  CHECK_REFUSED(desk.run(made, {}), Usage, "--wheels");
  desk.run(made, {.debs = desk.dir / "out/debs"});
  CHECK(desk.found().size() == 2);
}

TEST_CASE(
    "files of the same bytes are left as they are, and another file in the way stops all before a byte is written") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  desk.run(made);
  const auto before = snapshot(desk.dir / "out");
  const Exported again = desk.run(made);
  CHECK(snapshot(desk.dir / "out") == before);
  CHECK(again.folders[1].there.size() == 8);
  CHECK(again.folders[1].written.empty());

  fs::remove_all(desk.dir / "out/wheels");
  std::string changed = weights;
  changed.back() ^= 1;
  for (const std::string& other : {changed, std::string("short")}) {
    fs::remove(desk.dir / "out/models/name/model.safetensors");
    write_file(desk.dir / "out/models/name/model.safetensors", other);
    CHECK_REFUSED(desk.run(made), Conflict, "out/models/name/model.safetensors");
    CHECK(read_file(desk.dir / "out/models/name/model.safetensors") == other);
    CHECK(!fs::exists(desk.dir / "out/wheels"));
  }
  fs::remove(desk.dir / "out/models/name/model.safetensors");
  desk.run(made);
  CHECK(desk.found() == expected());
}

TEST_CASE("a rotten chunk leaves no file of its entry behind, and the next run completes what is missing") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  for (const char* path : {"files/models/name/model.safetensors", "files/models/name/config.json"}) {
    const auto [volume, offset] = begin_of(made, path);
    flip_bit(made.volume(volume), 8 * offset + 3);
    fs::remove_all(desk.dir / "out");
    CHECK_REFUSED(desk.run(made), Digest, made.volume(volume).filename().string());
    const auto right = expected();
    for (const auto& [name, bytes] : desk.found()) {
      INFO(name);
      CHECK(right.contains(name));
      CHECK((right.contains(name) && right.at(name) == bytes));
    }
    CHECK(!fs::exists(desk.dir / "out" / std::string(path).substr(6)));
    flip_bit(made.volume(volume), 8 * offset + 3);
    desk.run(made);
    CHECK(desk.found() == right);
  }
}

TEST_CASE("an entry that is not what was published is not exported, though its chunks are right") {
  const Desk desk;
  MadeBundle made = desk.make(full());
  for (bundle::Entry& entry : made.manifest.entries)
    if (entry.path.text() == "files/apt/tool_1.0_amd64.deb")
      entry.sha256 = entry.stored_sha256 = bundle::sha256(bundle::as_bytes("another"));
  reseal(made, {one_key_root(desk.key)}, {&desk.key});
  CHECK_REFUSED(desk.run(made), Digest, "tool_1.0_amd64.deb");
  CHECK(!fs::exists(desk.dir / "out/debs/tool_1.0_amd64.deb"));
}

TEST_CASE("no name leads out of the folder: not a hub's, not a link's that stands there") {
  const Desk desk;
  TinyBundle tiny;
  tiny.items = {stored("hub/models--..--evil/snapshots/aa/passwd", "x\n")};
  CHECK_REFUSED(desk.run(desk.make(tiny, "evil")), Format, "models--..--evil");
  tiny.items = {stored("modelscope/models/..--evil/snapshots/aa/passwd", "x\n")};
  CHECK_REFUSED(desk.run(desk.make(tiny, "scope")), Format, "models/..--evil");
  CHECK(desk.found().empty());

  const MadeBundle made = desk.make(full());
  fs::create_directories(desk.dir / "elsewhere");
  fs::create_directories(desk.dir / "out/models");
  fs::create_symlink(desk.dir / "elsewhere", desk.dir / "out/models/name");
  CHECK_REFUSED(desk.run(made), Conflict, "out/models/name");
  CHECK(fs::is_empty(desk.dir / "elsewhere"));
  fs::remove(desk.dir / "out/models/name");
  fs::create_directories(desk.dir / "out/models/name");
  fs::create_symlink(desk.dir / "elsewhere/config", desk.dir / "out/models/name/config.json");
  CHECK_REFUSED(desk.run(made), Conflict, "config.json");
  CHECK(fs::is_empty(desk.dir / "elsewhere"));
}

TEST_CASE(
    "a folder of the export that is a link is refused before a byte is written, though the right files are behind it") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  desk.run(made);
  fs::rename(desk.dir / "out/models/name", desk.dir / "elsewhere");
  fs::create_symlink(desk.dir / "elsewhere", desk.dir / "out/models/name");
  fs::remove_all(desk.dir / "out/wheels");
  CHECK_REFUSED(desk.run(made), Conflict, "out/models/name");
  CHECK(!fs::exists(desk.dir / "out/wheels"));

  TinyBundle tiny;
  tiny.items = image_items({{}});
  const MadeBundle images = desk.make(tiny, "images");
  const ExportFolders to{.images = desk.dir / "out/images"};
  desk.run(images, to);
  fs::rename(desk.dir / "out/images/blobs", desk.dir / "blobs");
  fs::create_symlink(desk.dir / "blobs", desk.dir / "out/images/blobs");
  fs::remove(desk.dir / "out/images/index.json");
  CHECK_REFUSED(desk.run(images, to), Conflict, "out/images/blobs");
  CHECK(!fs::exists(desk.dir / "out/images/index.json"));
}

TEST_CASE("two revisions of one repository do not become one folder, equal bytes of two layouts do") {
  const Desk desk;
  TinyBundle tiny;
  tiny.items = {stored("hub/models--org--name/snapshots/aa/f", "old\n"),
                stored("hub/models--org--name/snapshots/bb/f", "new\n")};
  CHECK_REFUSED(desk.run(desk.make(tiny, "two")), Conflict, "org/name/f");
  CHECK(desk.found().empty());
  tiny.items[1].bytes = "old\n";
  CHECK(desk.run(desk.make(tiny, "one")).folders[1].written == std::vector<std::string>{"org/name/f"});
}

TEST_CASE("a delta exports what it carries and says what it does not") {
  const Desk desk;
  TinyBundle tiny = full();
  tiny.items[0].absent = true;
  const Exported exported = desk.run(desk.make(tiny));
  CHECK(exported.folders[0].absent == std::vector<std::string>{tiny.items[0].path});
  CHECK(exported.folders[0].written.size() == 1);
  CHECK(!fs::exists(desk.dir / "out/wheels/demo-1.0-py3-none-any.whl"));
}

TEST_CASE("a file system without hard links gets the same files, and one that is full none that is cut") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  LinklessDisk linkless;
  desk.run(made, desk.folders, linkless);
  CHECK(desk.found() == expected());
  fs::remove_all(desk.dir / "out");
  FullDisk full_disk(20000);
  CHECK_REFUSED(desk.run(made, desk.folders, full_disk), Space, "");
  const auto right = expected();
  for (const auto& [name, bytes] : desk.found()) CHECK((right.contains(name) && right.at(name) == bytes));
  fs::remove_all(desk.dir / "out");
  SmallDisk small({.bytes = 10, .inodes = 10});
  CHECK_REFUSED(desk.run(made, desk.folders, small), Space, "out/");
  CHECK(desk.found().empty());
}

TEST_CASE("what a killed export or mend has left goes with the next one; what is at work, or another's, stays") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  const fs::path wheels = desk.folders.wheels;
  Disk disk;
  fs::create_directories(wheels);
  write_file(wheels / ".sealift-export-0123456789abcdef/0", "half");
  write_file(wheels / ".sealift-mend-0123456789abcdef/0", "not of this verb");
  write_file(wheels / ".sealift-export-is a file", "mine");
  fs::create_symlink("/", wheels / ".sealift-export-is a link");
  std::optional<NamelessFolder> at_work(std::in_place, disk, wheels, ".sealift-export-");
  CHECK_FALSE(fs::exists(wheels / ".sealift-export-0123456789abcdef"));
  write_file(at_work->path() / "0", "half");
  desk.run(made, {.wheels = wheels});
  CHECK(read_file(at_work->path() / "0") == "half");
  at_work.reset();
  std::set<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(wheels)) left.insert(entry.path().filename().string());
  CHECK(left == std::set<std::string>{".sealift-mend-0123456789abcdef", ".sealift-export-is a file",
                                      ".sealift-export-is a link", "demo-1.0-py3-none-any.whl",
                                      "more-1.0-py3-none-any.whl"});
}

TEST_CASE("several exports of one bundle into one folder at once all end well") {
  const Desk desk;
  const MadeBundle made = desk.make(full());
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> faults(4);
    {
      std::vector<std::jthread> runs;
      for (std::string& fault : faults)
        runs.emplace_back([&] {
          try {
            desk.run(made);
          } catch (const std::exception& error) {
            fault = error.what();
          }
        });
    }
    for (const std::string& fault : faults) CHECK(fault == "");
    CHECK(desk.found() == expected());
    fs::remove_all(desk.dir / "out");
  }
}

TEST_CASE("images become one image layout whose index names each, and a file on the way there stops all") {
  const Desk desk;
  TinyImage docker{.name = "app", .tag = "2", .docker = true};
  docker.layers[1] = "third";
  TinyBundle tiny;
  tiny.items = image_items({{}, docker});
  const MadeBundle made = desk.make(tiny);
  const ExportFolders to{.images = desk.dir / "out/images"};
  const Exported exported = desk.run(made, to);
  const auto found = desk.found();
  CHECK(exported.folders[0].written.size() == found.size());
  CHECK(found.size() == 2 + 1 + 3 + 2);  // manifests, the configuration of both, layers, index and layout
  CHECK(found.at("images/oci-layout") == R"({"imageLayoutVersion":"1.0.0"})");
  for (const auto& [path, bytes] : found)
    if (path.starts_with("images/blobs/sha256/")) CHECK(path.ends_with(hex_of(bytes)));
  const bundle::Json index = bundle::Json::parse(found.at("images/index.json"));
  REQUIRE(index["manifests"].size() == 2);
  CHECK(index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"] == "app:2");
  CHECK(index["manifests"][0]["mediaType"] == bundle::kDockerManifestType);
  CHECK(index["manifests"][1]["digest"] == "sha256:" + hex_of(TinyImage().manifest()));
  CHECK(index["manifests"][1]["size"] == TinyImage().manifest().size());

  CHECK(desk.run(made, to).folders[0].written.empty());
  fs::remove(desk.dir / "out/images/oci-layout");
  fs::remove(desk.dir / "out/images/index.json");
  write_file(desk.dir / "out/images/index.json", "{}");
  CHECK_REFUSED(desk.run(made, to), Conflict, "index.json");
  CHECK(!fs::exists(desk.dir / "out/images/oci-layout"));
}

TEST_CASE("an image layout gets its index last: with a rotten blob there is none, and an absent one is named") {
  const Desk desk;
  TinyBundle tiny{.volume_size = 16384};
  tiny.items = image_items({{}});
  const MadeBundle made = desk.make(tiny);
  const ExportFolders to{.images = desk.dir / "out/images"};
  const auto [volume, offset] =
      begin_of(made, bundle::image_blob_entry(bundle::sha256(bundle::as_bytes(TinyImage().layers[0]))));
  flip_bit(made.volume(volume), 8 * offset + 3);
  CHECK_REFUSED(desk.run(made, to), Digest, made.volume(volume).filename().string());
  CHECK(!fs::exists(desk.dir / "out/images/index.json"));

  TinyBundle delta;
  delta.items = image_items({TinyImage{.absent = true}});
  const Exported exported = desk.run(desk.make(delta, "delta"), {.images = desk.dir / "out/delta"});
  CHECK(exported.folders[0].absent.size() == 2);
  CHECK(!fs::exists(desk.dir / "out/delta/index.json"));
}
