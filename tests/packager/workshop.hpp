// SPDX-License-Identifier: Apache-2.0
// Everything that `create` needs, small: a server with wheels, an interpreter's tar in the cache, a program, a key.
#pragma once

#include <map>
#include <string>

#include "packager/create.hpp"
#include "packager/files/tree.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_root.hpp"
#include "tests/support/tiny_wheel.hpp"
#include "tests/support/unreliable_server.hpp"

namespace sealift::test {

using namespace sealift::packager;
namespace fs = std::filesystem;

struct Workshop {
  TempDir dir;
  UnreliableServer server;
  Lock lock;
  bundle::PrivateKey key = bundle::PrivateKey::generate();

  Workshop() {
    lock = {.name = "demo", .version = 1, .channel = "test", .created = "2026-01-01T00:00:00Z"};
    lock.target = {.arch = "x86_64", .glibc = {2, 28}};
    lock.glibc_floor = {2, 17};
    lock.python = "3.11";
    lock.imports = {"demo"};
    add_interpreter();
    add_wheel({.files = {{"demo/__init__.py", "ANSWER = 42\n"}, {"demo/libdemo.so", std::string(9000, 'x')}},
               .entry_points = "[console_scripts]\ndemo = demo:main\n"});
    add_program("bin/run", "#!/bin/sh\necho run\n");
    bundle::write_text(dir / "release.key", key.pem(), 0600);
    write_file(dir / "root.1.json", write_envelope(one_key_root(key)));
    write_file(dir / "sealift-install", "#!/bin/sh\n");
    write_file(dir / "audit.sh", "#!/bin/sh\n# audit\n");
  }

  fs::path cache() const { return dir / "cache"; }
  void add_interpreter(Tree tree = {}) {
    tree["bin/python3.11"] = {.text = std::string(5000, 'p'), .executable = true};
    tree["bin/python3"] = {.text = "python3.11", .link = true};
    tree["lib/python3.11/os.py"] = {.text = "# os\n"};
    const fs::path file = dir / "interpreter.tar";
    fs::remove(file);
    const TreeTar tar = write_tree_tar(tree, file);
    lock.interpreter = {.description = "CPython 3.11.2", .version = "3.11.2", .sha256 = tar.sha256, .size = tar.size};
    Cache(cache()).adopt(file, tar.sha256);
  }
  LockedWheel& add_wheel(const TinyWheel& tiny) {
    const std::string bytes = make_wheel(tiny), name = tiny.file_name();
    server.put("/" + name, {.body = bytes});
    lock.wheels.push_back({.name = tiny.name,
                           .version = tiny.version,
                           .file_name = name,
                           .url = server.url("/" + name),
                           .sha256 = bundle::sha256(bundle::as_bytes(bytes)),
                           .size = bytes.size()});
    return lock.wheels.back();
  }
  void add_program(const std::string& into, const std::string& bytes) {
    write_file(dir / into, bytes);
    lock.programs.push_back(
        {.source = dir / into, .sha256 = bundle::sha256(bundle::as_bytes(bytes)), .size = bytes.size(), .into = into});
  }
  unsigned recovery_percent = 0;
  std::string rpm_key = {};  // fingerprint of gpg's key that signs the index of rpm packages

  CreateResult pack(const std::string& out = "out", std::uint64_t volume_size = 0, const fs::path& base = {},
                    std::FILE* stream = nullptr, bool patches = false) {
    write_file(dir / "demo.lock.toml", write_lock(lock, dir.path()));
    return pack_locked(out, volume_size, base, stream, patches);
  }
  // Of the lock that the last one wrote; safe from several threads.
  CreateResult pack_locked(const std::string& out, std::uint64_t volume_size = 0, const fs::path& base = {},
                           std::FILE* stream = nullptr, bool patches = false) {
    bundle::Progress progress(stream);
    return create({.lock = dir / "demo.lock.toml",
                   .roots = {dir / "root.1.json"},
                   .keys = {dir / "release.key"},
                   .rpm_key = rpm_key,
                   .out = dir / out,
                   .cache = cache(),
                   .installer = dir / "sealift-install",
                   .base = base,
                   .patches = patches,
                   .volume_size = volume_size,
                   .recovery_percent = recovery_percent,
                   .fetch = {.jobs = 2, .attempts = 2, .first_pause = std::chrono::milliseconds(1)}},
                  progress);
  }
};

// Trust in what a workshop signs.
inline bundle::Trust pinned_root(const Workshop& workshop) {
  return pinned(one_key_root(workshop.key));
}

// Name -> bytes.
inline std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

}  // namespace sealift::test
