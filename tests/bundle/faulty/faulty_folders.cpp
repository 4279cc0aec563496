// SPDX-License-Identifier: Apache-2.0
// Faults of the files in a bundle's folder, recovery data among them.
#include "tests/bundle/faulty/faulty_bundles.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace sealift::test {

// A good bundle with recovery data in two files, which `change` damages.
void recovery_data() {
  TinyBundle with = tiny();
  with.recovery = 60;
  const auto made = [&](const std::string& name, const std::function<void(const MadeBundle&)>& change) {
    change(fresh("recovery-" + name, with));
  };
  const auto listed = [&](const std::string& name, const std::string& where, const Json& value) {
    made("manifest-" + name, [&](const MadeBundle& m) {
      Json json = parse_json(write_manifest(m.manifest), "");
      json[Json::json_pointer(where)] = value;
      seal_bytes(m, json.dump());
    });
  };
  made("good-whole", [](const MadeBundle&) {});
  made("good-left-out", [](const MadeBundle& m) {
    for (std::size_t i = 0; i < m.manifest.payload.recovery->files.size(); ++i) fs::remove(m.recovery(i));
    fs::remove(m.recovery_list());
  });
  made("good-without-one", [](const MadeBundle& m) { fs::remove(m.recovery(1)); });
  made("list-missing", [](const MadeBundle& m) { fs::remove(m.recovery_list()); });
  made("list-flipped", [](const MadeBundle& m) { flip(m.recovery_list(), 9); });
  made("list-short", [](const MadeBundle& m) { fs::resize_file(m.recovery_list(), 32); });
  made("flipped", [](const MadeBundle& m) { flip(m.recovery(1), fs::file_size(m.recovery(1)) * 8 - 1); });
  made("short", [](const MadeBundle& m) { fs::resize_file(m.recovery(0), fs::file_size(m.recovery(0)) - 1); });
  made("link", [](const MadeBundle& m) {
    fs::rename(m.recovery(0), m.folder / "x");
    fs::create_symlink("x", m.recovery(0));
  });
  made("extra", [](const MadeBundle& m) { write_file(m.folder / "tiny-7.rec009", "x"); });
  made("volume-flipped", [](const MadeBundle& m) { flip(m.volume(0), 8); });
  made("volume-missing", [](const MadeBundle& m) { fs::remove(m.volume(1)); });
  write_file(fresh("recovery-of-none").folder / "tiny-7.rec001", "x");
  listed("level-4", "/installer_level", 4);
  listed("no-groups", "/payload/recovery/groups", 0);
  listed("many-groups", "/payload/recovery/groups", 2097152);
  listed("groups-wrap", "/payload/recovery/groups", 9007199254740991u);
  listed("no-parity", "/payload/recovery/parity", 0);
  listed("parity-256", "/payload/recovery/parity", 256);
  listed("parity-255", "/payload/recovery/parity", 255);
  listed("parity-more", "/payload/recovery/parity", 9);
  listed("no-files", "/payload/recovery/files", Json::array());
  listed("file-name", "/payload/recovery/files/0/name", "tiny-7.rec002");
  listed("file-size", "/payload/recovery/files/0/size", 4095);
  listed("file-zero", "/payload/recovery/files/0/size", 0);
  listed("list-digest", "/payload/recovery/list_digest", std::string(64, '0'));
  listed("more-keys", "/payload/recovery/code", "xor");
}

void bad_folders() {
  const auto folder = [](const std::string& name, const std::function<void(const MadeBundle&)>& change) {
    change(fresh("folder-" + name));
  };
  const auto cut = [](const fs::path& file, long by) {
    fs::resize_file(file, static_cast<std::uintmax_t>(static_cast<long>(fs::file_size(file)) + by));
  };
  folder("missing-volume", [](const MadeBundle& m) { fs::remove(m.volume(1)); });
  folder("short-volume", [&](const MadeBundle& m) { cut(m.volume(1), -1); });
  folder("long-volume", [&](const MadeBundle& m) { cut(m.volume(1), 1); });
  folder("flipped-first", [](const MadeBundle& m) { flip(m.volume(0), 0); });
  folder("flipped-last", [](const MadeBundle& m) {
    const fs::path v = m.volume(m.manifest.payload.volumes.size() - 1);
    flip(v, fs::file_size(v) * 8 - 1);
  });
  folder("swapped-volumes", [](const MadeBundle& m) {
    fs::rename(m.volume(0), m.folder / "x");
    fs::rename(m.volume(1), m.volume(0));
    fs::rename(m.folder / "x", m.volume(1));
  });
  folder("link-volume", [](const MadeBundle& m) {
    fs::rename(m.volume(0), m.folder / "x");
    fs::create_symlink("x", m.volume(0));
  });
  folder("dangling-volume", [](const MadeBundle& m) {
    fs::remove(m.volume(0));
    fs::create_symlink("nowhere", m.volume(0));
  });
  folder("pipe-volume", [](const MadeBundle& m) {
    fs::remove(m.volume(0));
    ::mkfifo(m.volume(0).c_str(), 0600);
  });
  folder("folder-volume", [](const MadeBundle& m) {
    fs::remove(m.volume(0));
    fs::create_directory(m.volume(0));
  });
  folder("extra-volume", [](const MadeBundle& m) { write_file(m.folder / "tiny-7.vol009", "x"); });
  folder("extra-alike", [](const MadeBundle& m) { write_file(m.folder / "ti.y-7.vol001", "x"); });
  folder("extra-hidden", [](const MadeBundle& m) { write_file(m.folder / ".vol001", "x"); });
  folder("extra-line-break", [](const MadeBundle& m) { write_file(m.folder / "x\ntiny-7.vol001", "x"); });
  folder("extra-list", [](const MadeBundle& m) { write_file(m.folder / "other.chunks", "x"); });
  folder("extra-seal", [](const MadeBundle& m) { fs::copy_file(m.seal(), m.folder / "other-1.seal"); });
  folder("hidden-seal", [](const MadeBundle& m) { fs::copy_file(m.seal(), m.folder / ".other.seal"); });
  folder("good-extra", [](const MadeBundle& m) { write_file(m.folder / "README.volumes.txt", "x"); });
  folder("seal-renamed", [](const MadeBundle& m) { fs::rename(m.seal(), m.folder / "tiny-8.seal"); });
  folder("seal-missing", [](const MadeBundle& m) { fs::remove(m.seal()); });
  folder("seal-link", [](const MadeBundle& m) {
    fs::rename(m.seal(), m.folder / "x");
    fs::create_symlink("x", m.seal());
  });
  folder("seal-pipe", [](const MadeBundle& m) {
    fs::remove(m.seal());
    ::mkfifo(m.seal().c_str(), 0600);
  });
  folder("seal-too-large", [](const MadeBundle& m) { fs::resize_file(m.seal(), kMaxSealSize + 1); });
  folder("list-missing", [](const MadeBundle& m) { fs::remove(m.chunks()); });
  folder("list-short", [&](const MadeBundle& m) { cut(m.chunks(), -32); });
  folder("list-long", [&](const MadeBundle& m) { cut(m.chunks(), 1); });
  folder("list-link", [](const MadeBundle& m) {
    fs::rename(m.chunks(), m.folder / "x");
    fs::create_symlink("x", m.chunks());
  });
  folder("list-swapped", [](const MadeBundle& m) {
    std::string s = read_file(m.chunks());
    std::rotate(s.begin(), s.begin() + 32, s.end());
    write_file(m.chunks(), s);
  });
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "sizes", tiny(), key);
  const std::uint64_t seal_bits = read_file(made.seal()).size() * 8, list_bits = read_file(made.chunks()).size() * 8;
  for (std::uint64_t i = 0; i < 70; ++i) {
    const MadeBundle flipped = fresh("flip-seal-" + std::to_string(i));
    flip(flipped.seal(), i * 2654435761u % std::min<std::uint64_t>(seal_bits, read_file(flipped.seal()).size() * 8));
  }
  for (std::uint64_t i = 0; i < 8; ++i)
    flip(fresh("flip-list-" + std::to_string(i)).chunks(), i * 2654435761u % list_bits);
}

}  // namespace sealift::test
