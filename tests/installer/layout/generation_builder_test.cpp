// SPDX-License-Identifier: Apache-2.0
// Names are made by several threads while more are added: the same tree whatever the number, and an end in any case.
#include "installer/layout/generation_builder.hpp"

#include <atomic>

#include "installer/disk/disk_error.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 500;  // of each of ten folders

// As of one entry whose item is `item`, which gets the files.
Layout made_layout(const fs::path& item) {
  const auto origin = std::make_shared<Place::Origin>(Place::Origin{.owner = "entry", .item = item.string()});
  Layout layout;
  for (int folder = 0; folder < 10; ++folder) {
    const std::string in = "in/" + std::to_string(folder), out = "out" + std::to_string(folder);
    fs::create_directories(item / in);
    layout[out] = {.type = Place::Type::Folder, .origin = origin, .file = {}, .text = {}};
    for (int i = 0; i < kFiles; ++i) {
      const std::string name = "/f" + std::to_string(i);
      write_file(item / (in + name), out + name);
      layout[out + name] = {.type = Place::Type::File,
                            .origin = origin,
                            .file = {.path = in + name,
                                     .size = (out + name).size(),
                                     .sha256 = bundle::sha256(bundle::as_bytes(out + name))},
                            .text = {}};
    }
    layout[out + "/text"] = {.type = Place::Type::Text, .origin = origin, .file = {}, .text = "text of " + out};
    layout[out + "/link"] = {.type = Place::Type::Link, .origin = origin, .file = {}, .text = "text"};
  }
  return layout;
}

// Fails the hundredth link and every one after it, and counts all requests.
class FailingDisk final : public Disk {
 public:
  bool link(const FileName& from, const FileName& to) override {
    if (++asked >= 100) throw_disk_error("a file cannot be linked", to.path(), ENOSPC);
    return Disk::link(from, to);
  }
  std::atomic<int> asked = 0;
};

// Links nothing, as a file system without hard links; edits files of the name `edited` before they are copied.
class CopyingDisk final : public Disk {
 public:
  bool link(const FileName& from, const FileName&) override {
    if (from.name == edited) write_file(from.path(), "out0/F7");
    return false;
  }
  std::string edited;
};

}  // namespace

TEST_CASE("any number of threads makes the same names") {
  const TempDir dir;
  const Layout layout = made_layout(dir / "item");
  for (const unsigned threads : {1u, 2u, 5u}) {
    CAPTURE(threads);
    Disk disk;
    const fs::path root = dir / ("built" + std::to_string(threads));
    GenerationBuilder builder(root, disk, threads);
    for (const Layout::value_type& name : layout) builder.add(name);
    builder.finish();
    int found = 0;
    for (const auto& there : fs::recursive_directory_iterator(root)) {
      ++found;
      if (there.is_symlink()) {
        CHECK(fs::read_symlink(there) == "text");
      } else if (there.path().filename() == "text") {
        CHECK(read_file(there) == "text of " + there.path().parent_path().filename().string());
      } else if (there.is_regular_file()) {
        CHECK(read_file(there) == there.path().lexically_relative(root).string());
        CHECK(fs::hard_link_count(there) > 1);
      }
    }
    CHECK(found == static_cast<int>(layout.size()));
  }
}

TEST_CASE("the first failure of any thread is thrown at the end, and little is begun after it") {
  const TempDir dir;
  const Layout layout = made_layout(dir / "item");
  for (const unsigned threads : {1u, 4u}) {
    CAPTURE(threads);
    FailingDisk disk;
    GenerationBuilder builder(dir / ("built" + std::to_string(threads)), disk, threads);
    for (const Layout::value_type& name : layout) builder.add(name);
    CHECK_REFUSED(builder.finish(), Space, "built");
    CHECK(disk.asked < 100 + static_cast<int>(threads));
  }
}

TEST_CASE("files are copied where nothing can be linked, and their bytes are held to the digest as they are copied") {
  const TempDir dir;
  const Layout layout = made_layout(dir / "item");
  CopyingDisk disk;
  build_generation(layout, dir / "copied", disk, 3);
  for (const auto& [path, place] : layout) {
    if (place.type != Place::Type::File) continue;
    REQUIRE(read_file(dir / "copied" / path) == path);
    REQUIRE(fs::hard_link_count(dir / "copied" / path) == 1);
    REQUIRE(fs::status(dir / "copied" / path).permissions() == fs::perms(0444));
  }
  disk.edited = "f7";  // after it was looked at
  CHECK_REFUSED(build_generation(layout, dir / "refused", disk, 3), Digest, "changed since it was unpacked");
}

TEST_CASE("a builder that is given up stops") {
  const TempDir dir;
  const Layout layout = made_layout(dir / "item");
  Disk disk;
  {
    GenerationBuilder builder(dir / "built", disk, 3);
    for (const Layout::value_type& name : layout) builder.add(name);
  }  // no thread of it is left, or this would not end
  CHECK(fs::exists(dir / "built/out0"));
}
