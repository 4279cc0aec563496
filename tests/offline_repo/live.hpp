// SPDX-License-Identifier: Apache-2.0
// A server in this process over a real bundle, on a free port, with what it logged.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include "offline_repo/protocols/index_pages.hpp"
#include "offline_repo/server/server.hpp"
#include "tests/offline_repo/raw_client.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

inline TinyWheel big_wheel(std::size_t size) {
  return {.name = "big", .files = {{"big/__init__.py", ""}, {"big/data.bin", noise(size)}}};
}

// A bundle, a server over it on a free port, and what the server logged.
class Live {
 public:
  explicit Live(TinyBundle tiny, offline_repo::ServerOptions options = {})
      : made(make_bundle(dir_ / "bundle", std::move(tiny))) {
    options.listen.port = 0;
    options.threads = 2;
    options.on_request = [this, also = options.on_request](const std::string& line) {
      log(line);
      if (also) also(line);
    };
    options.on_fault = [this](const std::string& line) { log("fault: " + line); };
    const auto contents = offline_repo::read_contents(
        std::make_shared<const bundle::VerifiedBundle>(bundle::verify(bundle::open(made.folder), made.trusted, kNow)));
    catalogue = offline_repo::catalogue_of({contents});
    server = std::make_unique<offline_repo::Server>(
        offline_repo::Held{{.place = made.folder, .state = offline_repo::HeldState::Current, .contents = contents}},
        std::move(options));
    port = server->address().port;
    thread_ = std::jthread([this] { server->run(); });
  }
  ~Live() { finish(); }

  void finish() {
    server->stop();
    if (thread_.joinable()) thread_.join();
  }
  const offline_repo::IndexedWheel& wheel(const std::string& project) const {
    return catalogue.projects.at(project).wheels.begin()->second;
  }
  std::string target(const std::string& project) const {
    return "/files/" + wheel(project).sha256.hex() + "/" + offline_repo::url_escaped(wheel(project).file_name);
  }
  std::string logged() {
    const std::lock_guard lock(guard_);
    return log_;
  }
  // Returns once the log holds `text`. Throws when it does not within `time`, and says what it holds.
  void await_log(const std::string& text, std::chrono::milliseconds time = std::chrono::seconds(30)) {
    std::unique_lock lock(guard_);
    if (grown_.wait_for(lock, time, [&] { return log_.find(text) != std::string::npos; })) return;
    throw std::runtime_error("after " + std::to_string(time.count()) + " ms the log lacks \"" + text +
                             "\"; it says:\n" + log_);
  }

 private:
  void log(const std::string& line) {
    const std::lock_guard lock(guard_);
    log_ += line + "\n";
    grown_.notify_all();
  }

  TempDir dir_;
  std::mutex guard_;
  std::condition_variable grown_;
  std::string log_;

 public:
  MadeBundle made;
  offline_repo::Catalogue catalogue;
  std::unique_ptr<offline_repo::Server> server;
  std::uint16_t port = 0;

 private:
  std::jthread thread_;
};

}  // namespace sealift::test
