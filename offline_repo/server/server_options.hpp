// SPDX-License-Identifier: Apache-2.0
// The limits and deadlines of the server, with their defaults, and where its log lines go.
// Every one is here, so that an operator's question about a limit has one place to look.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "offline_repo/holdings/scrub.hpp"
#include "offline_repo/records/audit_log.hpp"
#include "offline_repo/server/listen_address.hpp"
#include "offline_repo/server/tls.hpp"
#include "offline_repo/views/tokens.hpp"

namespace sealift::offline_repo {

struct ServerOptions {
  ListenAddress listen{.host = "127.0.0.1", .port = 8080};
  unsigned threads = 1;
  std::uint64_t cache_bytes = std::uint64_t{512} << 20;  // of checked chunks, for all connections together
  std::size_t cache_files = 1024;                        // of them in memory files, each of which takes a descriptor
  // When they are all taken, the connection that has waited longest for a request, or for its end, makes room for a new
  // one; while all are being answered, new ones wait in the system's queue.
  std::size_t max_connections = 16'384;
  // Of those, of one address, once half of them are taken: until then each may have what nobody else asks for. Behind a
  // proxy all clients have one.
  std::size_t max_per_client = 64;
  std::size_t max_header = std::size_t{16} << 10;     // bytes of request line and headers together
  std::chrono::milliseconds idle_timeout{30'000};     // until the first byte of a request
  std::chrono::milliseconds request_timeout{10'000};  // from there for its whole header, however it comes
  std::chrono::milliseconds write_timeout{60'000};    // for each 256 KiB of an answer
  std::chrono::milliseconds stop_timeout{10'000};     // for answers under way, from the moment of stopping
  std::optional<ListenAddress> admin_listen;          // for /healthz and /metrics, which the other one then lacks
  std::shared_ptr<AuditLog> audit;                    // none: nobody wants one; SIGHUP reopens it
  bool audit_required = false;                        // while it cannot be written, requests get 503
  // Reads the tokens, at the start and at each SIGHUP; none: everybody sees everything.
  std::function<std::vector<Token>()> tokens;
  std::string contact = {};  // whom a client without a token is told to ask
  // Reads certificate and key, at the start and at each SIGHUP; none: plain HTTP. Where `admin_listen` is it stays so.
  std::function<std::shared_ptr<const TlsContext>()> tls = {};
  // Bytes of this chunk could not be read or were wrong; from any thread. Its files may then be taken out.
  std::function<void(const std::shared_ptr<const bundle::VerifiedBundle>&, std::uint64_t)> on_rotten = {};
  std::shared_ptr<const ScrubCounts> scrub = {};       // for the metrics; null: there is no scrub
  std::function<void()> on_hangup = {};                // at SIGHUP
  std::function<void()> on_stop;                       // once stopping has begun
  std::function<void(const std::string&)> on_request;  // one line each, from any thread; none: nobody wants them
  std::function<void(const std::string&)> on_fault = [](const std::string&) {};  // likewise
};

}  // namespace sealift::offline_repo
