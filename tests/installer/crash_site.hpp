// SPDX-License-Identifier: Apache-2.0
// What the tests of crashes and faults share: a site with bundles of some forty files in several volumes, and what must
// hold of a prefix at any moment, whatever happened.
#pragma once

#include <random>

#include "installer/prefix/trust_store.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/disks.hpp"
#include "tests/installer/site.hpp"

namespace sealift::test {

// Tests of this kind write some gigabytes; in memory where the machine has such a folder.
inline void use_memory_for_temporary_folders() {
  if (::access("/dev/shm", W_OK | X_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
}

inline std::map<std::string, std::string> modules_of(const std::string& package, int count) {
  std::map<std::string, std::string> files;
  for (int i = 0; i < count; ++i)
    files[package + (i % 3 == 0 ? "/m" : "/sub/m") + std::to_string(i) + ".py"] = numbers_text(100 + i, 20 * (i + 1));
  return files;
}

inline TinyBundle forty_files() {
  TinyBundle tiny{.chunk_size = 4096, .volume_size = 16384};
  std::vector<std::pair<bundle::TarMember, std::string>> members = {{tar_folder("lib"), ""},
                                                                    {tar_link("lib/alias", "text1"), ""}};
  for (int i = 0; i < 9; ++i)
    members.push_back({tar_file("lib/text" + std::to_string(i), i == 8), numbers_text(i, 30)});
  tiny.items = {wheel_item({.files = modules_of("demo", 13), .entry_points = "[console_scripts]\ndemo = demo:main\n"}),
                wheel_item({.name = "extra", .files = modules_of("extra", 6)}),
                tree_item("trees/base.tar", members),
                file_item("files/notes", numbers_text(7, 300), "share/notes"),
                file_item("files/empty", "", "share/empty"),
                file_item("files/tool", "#!/bin/sh\nexit 0\n", "bin/tool", true)};
  return tiny;
}

// The next version: one wheel more, one file changed, the rest shared.
inline TinyBundle forty_files_next() {
  TinyBundle tiny = forty_files();
  tiny.version = 2;
  tiny.items.push_back(wheel_item({.name = "more", .files = modules_of("more", 4)}));
  tiny.items[3].bytes = numbers_text(8, 200);
  return tiny;
}

// Another bundle, of which nothing is shared.
inline TinyBundle unrelated() {
  TinyBundle tiny;
  tiny.name = "unrelated";
  tiny.items = {wheel_item({.name = "zebra", .files = modules_of("zebra", 3)}),
                tree_item("trees/other.tar", {{tar_file("a/deep/file"), "a"}, {tar_file("z/last"), "z"}}),
                file_item("files/other", "other", "share/other")};
  return tiny;
}

inline std::string random_bytes(std::uint32_t seed, std::size_t size) {
  std::mt19937 random(seed);
  std::string bytes;
  while (bytes.size() < size) bytes.push_back(static_cast<char>(random()));
  return bytes;
}

// One wheel that is nearly all of its bundle, so that threads share it: files of several chunks, many of a part of one,
// folders with members of their own, programs that are rewritten.
inline TinyBundle one_large_wheel() {
  TinyBundle tiny{.chunk_size = 4096, .volume_size = 65536, .items = {}};
  std::map<std::string, std::string> files = modules_of("demo", 12);
  for (std::uint32_t i = 0; i < 6; ++i) {
    files["demo/lib" + std::to_string(i) + "/"] = "";
    files["demo/lib" + std::to_string(i) + "/big.bin"] = random_bytes(i, 20'000 + 9'000 * i);
    files["demo/data" + std::to_string(i)] = random_bytes(100 + i, 3000);
  }
  files["demo-1.0.data/scripts/tool"] = "#!python\nprint(1)\n";
  tiny.items = {wheel_item({.files = files, .entry_points = "[console_scripts]\ndemo = demo:main\n"}),
                file_item("files/notes", numbers_text(7, 300), "share/notes")};
  return tiny;
}

struct CrashSite : Site {
  MadeBundle first, second, other;
  fs::path next_root = dir / "root.2.json";

  CrashSite()
      : first(make(forty_files())), second(make(forty_files_next(), "second")), other(make(unrelated(), "other")) {
    threads = 1;  // the same operations every time
    CHECK(first.manifest.payload.volumes.size() == 3);
    const bundle::Root root = next_root_of();
    write_file(next_root, bundle::write_envelope(signed_root(root, {&key})));
  }

  // Leaves what is finished of `made` in staging, as a disc that cannot be read to its end does.
  void interrupted(const MadeBundle& made) const {
    TestDisk disk;
    std::uint64_t byte = 0;  // the last one of the last entry
    for (const bundle::Entry& entry : made.manifest.entries)
      byte = std::max(byte, entry.offset + entry.stored_size - 1);
    std::size_t volume = 0;
    while (byte >= made.manifest.payload.volumes[volume].size) byte -= made.manifest.payload.volumes[volume++].size;
    flip_bit(made.volume(volume), byte * 8);
    CHECK_REFUSED(apply(made, disk), Digest, "differs from what was signed");
    flip_bit(made.volume(volume), byte * 8);
    CHECK(fs::exists(prefix().staged_items()));
  }

 private:
  bundle::Root next_root_of() const {
    return test::next_root(make_root({&key}, {&key}),
                           [](bundle::Root& root) { root.created = "2026-02-01T00:00:00Z"; });
  }
};

// The same image without what may differ from run to run: stamps, times and what the place was
// warned of in a generation's record and in its receipt, the page
// that tells the receipt's digest, who held the lock.
inline DiskImage comparable(DiskImage image) {
  image.erase("stamps");  // a cache of inodes and times
  const auto without = [](std::string& text, const std::string& key, char end) {
    if (const std::size_t at = text.find("\"" + key + "\":"); at != std::string::npos)
      text.erase(at, text.find(end, at) - at);
  };
  for (auto& [path, there] : image) {
    const bool receipt = path.starts_with("receipts/");
    if (path == "lock" || (receipt && path.ends_with(".txt"))) there.node.data.clear();
    if (!path.ends_with("/generation.json") && path != "generation.json" && !receipt) continue;
    without(there.node.data, "installed", ',');
    without(there.node.data, "milliseconds", ',');
    without(there.node.data, "preflight", ']');
  }
  return image;
}

// The complete items and generations that there are, to hold others against.
class GoodParts {
 public:
  void learn(const DiskImage& image) {
    for (const char* place : {"store", "staging/items", "generations"})
      for (const auto& [name, part] : parts(image, place)) parts_[name] = part;
  }

  // What is wrong with `image`, on the way from `before` to `after`; nothing if all is well.
  std::string fault_of(const DiskImage& image, const DiskImage& before, const DiskImage& after) const {
    for (const char* place : {"store", "staging/items", "generations"})
      for (const auto& [name, part] : parts(image, place))
        if (const auto good = parts_.find(name); good == parts_.end() || good->second != part)
          return std::string(place) + "/" + name + " is not whole";
    for (const char* place : {"store", "generations"})
      for (const auto& [name, part] : parts(before, place))
        if (!image.contains(std::string(place) + "/" + name)) return std::string(place) + "/" + name + " is lost";
    const std::string current = current_of(image);
    if (current != current_of(before) && current != current_of(after)) return "current is '" + current + "'";
    if (!current.empty() && !image.contains(current)) return "current leads nowhere: " + current;
    const auto trust = trust_of(image), trust_before = trust_of(before), trust_after = trust_of(after);
    if (trust_before && (!trust || trust->counter < trust_before->counter)) return "what was trusted is forgotten";
    if (current != current_of(before) && (!trust || trust->state != trust_after->state))
      return "what is installed was not remembered";
    return {};
  }
  // Whether `image` holds everything that `after` does, as far as anybody was told.
  std::string fault_of_end(const DiskImage& image, const DiskImage& before, const DiskImage& after) const {
    if (std::string fault = fault_of(image, before, after); !fault.empty()) return fault;
    if (current_of(image) != current_of(after)) return "it was said to be current and is not";
    for (const char* copy : bundle::kTrustCopies)
      if (after.at(std::string("trust/") + copy) != image_at(image, std::string("trust/") + copy))
        return "a copy of the trust state is not durable";
    return {};
  }

 private:
  static ImagePath image_at(const DiskImage& image, const std::string& path) {
    const auto there = image.find(path);
    return there == image.end() ? ImagePath{} : there->second;
  }
  static std::string current_of(const DiskImage& image) { return image_at(image, "current").node.data; }

  static std::optional<bundle::StoredTrust> trust_of(const DiskImage& image) {
    std::optional<bundle::StoredTrust> newest;
    for (std::size_t copy = 0; copy < bundle::kTrustCopies.size(); ++copy) {
      const std::string path = std::string("trust/") + bundle::kTrustCopies[copy];
      auto stored = bundle::parse_trust_copy(image_at(image, path).node.data, copy, path);
      if (stored && (!newest || stored->counter > newest->counter)) newest = std::move(stored);
    }
    return newest;
  }

  static std::map<std::string, DiskImage> parts(const DiskImage& image, const std::string& place) {
    std::map<std::string, DiskImage> found;
    for (const auto& [path, there] : part_of(image, place)) {
      const std::size_t slash = std::min(path.find('/'), path.size());
      DiskImage& part = found[path.substr(0, slash)];
      part[path.substr(slash)] = {there.node, ""};
    }
    for (auto& [name, part] : found) {
      if (const auto record = part.find("/generation.json"); record != part.end()) part = comparable(std::move(part));
    }
    return found;
  }

  std::map<std::string, DiskImage> parts_;
};

}  // namespace sealift::test
