// SPDX-License-Identifier: Apache-2.0
// What all connections of a server share: what is shown to whom, the options, the chunks that were checked, the event
// loop, and whether it is stopping.
// The server owns it and outlives its connections.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <mutex>

#include "offline_repo/chunks/chunk_cache.hpp"
#include "offline_repo/records/metrics.hpp"
#include "offline_repo/server/server_options.hpp"
#include "offline_repo/server/tls.hpp"
#include "offline_repo/views/access.hpp"

namespace sealift::offline_repo {

// What bodies cost so far, in calls of the system and in hand-overs between threads.
struct SendCounts {
  std::atomic<std::uint64_t> calls{0};  // sendfile(2), sendmsg(2)
  std::atomic<std::uint64_t> waits{0};  // for the client to take more: a timer, epoll_wait(2), and a thread that wakes
  std::atomic<std::uint64_t> turns{0};  // that ended for other connections' sake, each of which wakes a thread
};

struct ServerState {
  ServerOptions options;
  ChunkCache cache{options.cache_bytes, options.cache_files};
  boost::asio::io_context context;
  std::atomic<bool> stopping{false};
  Metrics metrics{};
  SendCounts sends{};
  std::atomic<std::chrono::steady_clock::rep> last_look{0};  // of /healthz at a volume
  std::atomic<std::uint64_t> looks{0};
  std::mutex access_guard{};
  std::shared_ptr<const Access> access{};  // replaced as a whole

  std::shared_ptr<const Access> access_now() {
    const std::lock_guard lock(access_guard);
    return access;
  }
  std::shared_ptr<const TlsContext> tls{};  // likewise, under the same lock; null: plain HTTP

  std::shared_ptr<const TlsContext> tls_now() {
    const std::lock_guard lock(access_guard);
    return tls;
  }
  // Where somebody takes out what is wrong, the rest is as good as before.
  void fail(const std::shared_ptr<const bundle::VerifiedBundle>& in, std::uint64_t chunk, const std::string& why) {
    options.on_rotten ? options.on_rotten(in, chunk) : metrics.fail(in, why);
  }
};

}  // namespace sealift::offline_repo
