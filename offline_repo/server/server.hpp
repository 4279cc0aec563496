// SPDX-License-Identifier: Apache-2.0
// The HTTP server over what a site holds: listens, accepts, and stops in an orderly way. Read only.
// Beast and Asio are included only in this room, and by none of the headers that the verbs see.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "offline_repo/chunks/chunk_cache.hpp"
#include "offline_repo/holdings/held_bundle.hpp"
#include "offline_repo/server/server_options.hpp"

namespace sealift::offline_repo {

class Server {
 public:
  // Listens once this returns; throws Io when it cannot listen there, and what reading the tokens throws.
  Server(Held held, ServerOptions options);
  ~Server();

  ListenAddress address() const;  // with the real port
  std::optional<ListenAddress> admin_address() const;
  CacheCounts cache() const;  // from any thread
  // How often the system was called to send, a client was waited for, and a thread handed on; from any thread.
  std::uint64_t send_steps() const;

  // Serves until stop(), SIGTERM or SIGINT, which are caught from here on; answers under way are finished first.
  // SIGHUP reopens the audit log and reads tokens and certificate, where there are some, and calls
  // ServerOptions::on_hangup. From here on this process ignores SIGPIPE, which sendfile(2) would raise where a client
  // went away.
  void run();
  void stop();  // from any thread

  // Shows these bundles from now on, as one step; answers under way end as they began. From any thread.
  void show(Held held);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sealift::offline_repo
