// SPDX-License-Identifier: Apache-2.0
// The door to the network: connections in, `respond` in the middle, checked bytes out.
// Its source is the only one that includes Beast, so there is one HTTP parser and one place to look for its limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "offline_repo/catalogue/catalogue.hpp"

namespace sealift::offline_repo {

struct ListenAddress {
  std::string host;  // a numeric address: a static program has no resolver
  std::uint16_t port = 0;

  std::string text() const;  // "127.0.0.1:8080", "[::1]:8080"
};

// Throws Usage unless `text` is ADDRESS:PORT, IPv6 in brackets. Port 0 lets the system choose.
ListenAddress parse_listen(std::string_view text);

struct ServerOptions {
  ListenAddress listen{.host = "127.0.0.1", .port = 8080};
  unsigned threads = 1;
  std::size_t max_connections = 256;  // further ones wait in the system's queue; each may hold one chunk in memory
  std::size_t max_header = std::size_t{16} << 10;     // bytes of request line and headers together
  std::chrono::milliseconds request_timeout{30'000};  // for a whole request header, idle time before it included
  std::chrono::milliseconds write_timeout{60'000};    // for each 256 KiB of an answer
  std::chrono::milliseconds stop_timeout{10'000};     // for answers under way once stopping
  std::function<void(const std::string&)> on_request = [](const std::string&) {};  // one line each, from any thread
  std::function<void(const std::string&)> on_fault = [](const std::string&) {};    // likewise
};

class Server {
 public:
  // Listens once this returns; throws Io when the address cannot be had.
  Server(Catalog catalog, ServerOptions options);
  ~Server();

  ListenAddress address() const;  // with the real port

  // Serves until stop() or, from then on caught, SIGTERM or SIGINT; answers under way are finished first.
  void run();
  void stop();  // from any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sealift::offline_repo
