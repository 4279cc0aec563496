// SPDX-License-Identifier: Apache-2.0
// A machine with a prefix, for tests: installs bundles into a temporary folder and tells what lies there.
// The machine is a made-up one, so that these tests mean the same on every host.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <fstream>

#include "installer/apply/apply.hpp"
#include "installer/preflight/preflight_run.hpp"
#include "installer/upkeep/status.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

namespace fs = std::filesystem;

inline installer::Machine common_machine() {
  return {.target = {.arch = "x86_64", .glibc = {2, 36}, .kernel = "6.1"}, .libc = "/lib/libc.so.6"};
}

// A disk with as little free space as a test wants.
class SmallDisk final : public installer::Disk {
 public:
  explicit SmallDisk(installer::FreeSpace space) : space_(space) {}
  installer::FreeSpace free_space(const fs::path&) const override { return space_; }

 private:
  installer::FreeSpace space_;
};

// A file system without hard links.
class LinklessDisk final : public installer::Disk {
 public:
  bool link(const installer::FileName&, const installer::FileName&) override { return false; }
};

// A file system that is full after so many bytes, whatever it said before.
class FullDisk final : public installer::Disk {
 public:
  explicit FullDisk(std::uint64_t bytes) : left_(bytes) {}
  void write(const bundle::Descriptor& file, const fs::path& path, bundle::ByteView bytes) override {
    if (left_.fetch_sub(static_cast<std::int64_t>(bytes.size())) < static_cast<std::int64_t>(bytes.size()))
      bundle::throw_errno("a file cannot be written", path, ENOSPC);
    Disk::write(file, path, bytes);
  }

 private:
  std::atomic<std::int64_t> left_;
};

struct Site {
  TempDir dir;
  installer::Machine machine = common_machine();
  unsigned threads = 2;
  bundle::PrivateKey key = bundle::PrivateKey::generate();  // of the root that this site pins

  installer::Prefix prefix() const { return installer::Prefix(dir / "prefix"); }
  fs::path current() const { return prefix().current(); }
  fs::path site_packages() const { return current() / "lib/python3.11/site-packages"; }

  MadeBundle make(const TinyBundle& tiny, const std::string& folder = "bundle") const {
    return make_bundle(dir / folder, tiny, key);
  }
  // How this site would apply it; a test changes what it is about.
  installer::ApplyOptions options(const MadeBundle& made) const {
    return {.bundle = made.folder,
            .prefix = prefix(),
            .fingerprint = made.trusted.state.pinned,
            .now = kNow,
            .machine = machine,
            .threads = threads};
  }
  installer::PreflightRun preflight(const installer::ApplyOptions& asked, const installer::Disk& disk) const {
    return run_preflight({.bundle = asked.bundle,
                          .prefix = asked.prefix,
                          .fingerprint = asked.fingerprint,
                          .allow_downgrade = asked.allow_downgrade,
                          .now = asked.now,
                          .machine = asked.machine,
                          .compile_bytecode = asked.compile_bytecode},
                         disk);
  }
  installer::Applied apply(const installer::ApplyOptions& options, installer::Disk& disk) const {
    bundle::Progress silent(nullptr);
    return installer::apply(options, disk, silent);
  }
  installer::Applied apply(const installer::ApplyOptions& options) const {
    installer::Disk disk;
    return apply(options, disk);
  }
  installer::Applied apply(const MadeBundle& made, installer::Disk& disk, bool dry_run = false,
                           bool allow_downgrade = false) const {
    installer::ApplyOptions as_asked = options(made);
    as_asked.dry_run = dry_run;
    as_asked.allow_downgrade = allow_downgrade;
    return apply(as_asked, disk);
  }
  installer::Applied apply(const MadeBundle& made, bool dry_run = false) const {
    installer::Disk disk;
    return apply(made, disk, dry_run);
  }
};

inline struct stat status_of_path(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) throw std::runtime_error("cannot examine " + path.string());
  return status;
}

// Every path below `root` with inode, size, mode and time of change: equal snapshots mean that nothing was written.
inline std::map<std::string, std::string> snapshot(const fs::path& root) {
  std::map<std::string, std::string> found;
  if (!fs::exists(root)) return found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const struct stat status = status_of_path(entry.path());
    found[entry.path().lexically_relative(root).string()] =
        std::to_string(status.st_ino) + " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mode) +
        " " + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
  }
  return found;
}

// The same without what even a refusal may leave: the lock and the folders' own times.
inline std::map<std::string, std::string> installed(const fs::path& root) {
  std::map<std::string, std::string> found = snapshot(root);
  found.erase("lock");
  return found;
}

inline void flip_bit(const fs::path& path, std::uint64_t bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(bit / 8)).put(static_cast<char>(byte ^ (1 << bit % 8)));
}

inline std::string numbers_text(std::uint32_t seed, int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += std::to_string(seed = seed * 2654435761u + 12345) + "\n";
  return text;
}

// A file whose name RECORD must quote.
inline TinyWheel with_odd_name(TinyWheel wheel, const std::string& path, const std::string& bytes) {
  wheel.files[path] = bytes;
  wheel.unrecorded.push_back(path);
  std::string quoted = "\"";
  for (const char c : path) quoted += c == '"' ? "\"\"" : std::string(1, c);
  wheel.extra_record +=
      quoted +
      "\",sha256=" + bundle::to_base64(bundle::sha256(bundle::as_bytes(bytes)).bytes, bundle::Base64::UrlNoPad) + "," +
      std::to_string(bytes.size()) + "\n";
  return wheel;
}

inline TinyItem file_item(const std::string& path, const std::string& bytes, const std::string& into,
                          bool executable = false) {
  return {.path = path, .bytes = bytes, .into = into, .executable = executable};
}

inline TinyItem tree_item(const std::string& path,
                          const std::vector<std::pair<bundle::TarMember, std::string>>& members,
                          const std::string& into = "") {
  return {.path = path,
          .kind = bundle::EntryKind::Tree,
          .bytes = make_tar(members, true),
          .into = into,
          .encoding = bundle::Encoding::Zstd};
}

// A bundle with an entry of each kind, and a program among the files.
inline TinyBundle three_kinds() {
  TinyBundle tiny;
  tiny.items = {wheel_item({.entry_points = "[console_scripts]\ndemo-run = demo:main\n"}),
                tree_item("trees/python.tar", {{tar_folder("lib"), ""},
                                               {tar_file("bin/tool", true), "#!/bin/sh\necho tool\n"},
                                               {tar_file("lib/data.txt"), "data\n"},
                                               {tar_link("bin/alias", "tool"), ""}}),
                file_item("files/notes", "notes\n", "share/notes.txt"),
                file_item("files/program", "#!/bin/sh\necho program\n", "bin/program", true)};
  return tiny;
}

// Its next version: the same and one wheel more.
inline TinyBundle three_kinds_and_more() {
  TinyBundle tiny = three_kinds();
  tiny.version = 2;
  tiny.items.push_back(wheel_item({.name = "more", .files = {{"more/__init__.py", "MORE = 1\n"}}}));
  return tiny;
}

}  // namespace sealift::test
