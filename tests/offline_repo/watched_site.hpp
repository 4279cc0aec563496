// SPDX-License-Identifier: Apache-2.0
// The real program over a watched folder, and its verbs upon it.
#pragma once

#include <optional>

#include "tests/offline_repo/raw_client.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/support/await.hpp"
#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

// A server over a watched folder, and the program's verbs upon it.
struct WatchedSite {
  WatchedSite() {
    std::filesystem::create_directories(folder);
    child.emplace(serve({"--watch", folder, "--poll", "1", "--admin-listen", "127.0.0.1:0", "--fingerprint",
                         "sha256:" + one_key_root(key).digest().hex()}),
                  dir / "log");
    port = port_of(child->line());
    const std::string line = child->line();
    admin = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
  }
  MadeBundle make(const std::string& name, std::uint64_t version, const std::string& channel, const std::string& text) {
    return make_bundle(dir / (name + std::to_string(version)),
                       {.name = name,
                        .channel = channel,
                        .version = version,
                        .items = {wheel_item({.name = name, .files = {{name + "/__init__.py", text}}})}},
                       key);
  }
  void verb(std::vector<std::string> words) {
    words.insert(words.begin(), SEALIFT_REPO_PROGRAM);
    const Ran ran = run(words);
    INFO(ran.errors);
    CHECK(ran.status == 0);
    child->send(SIGHUP);
  }
  Ran status() { return run({SEALIFT_REPO_PROGRAM, "status", "127.0.0.1:" + std::to_string(admin)}); }
  void await_status(const std::string& text) {
    await("the status " + text, [&] { return status().output.find(text) != std::string::npos; });
  }
  void await_no_status(const std::string& text) {
    await("a status without " + text, [&] { return status().output.find(text) == std::string::npos; });
  }
  bool lists(const std::string& page, const MadeBundle& made) const {
    return fetch(port, page).body.find(made.manifest.entries.front().sha256.hex()) != std::string::npos;
  }
  std::string file_of(const MadeBundle& made) const {
    const bundle::Entry& entry = made.manifest.entries.front();
    return "/files/" + entry.sha256.hex() + entry.path.text().substr(entry.path.text().rfind('/'));
  }

  TempDir dir;
  bundle::PrivateKey key = bundle::PrivateKey::generate();
  const std::filesystem::path folder = dir / "bundles";
  std::optional<ServerProcess> child;
  std::uint16_t port = 0, admin = 0;
};

}  // namespace sealift::test
