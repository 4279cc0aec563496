// SPDX-License-Identifier: Apache-2.0
// The HTTP server over a catalogue: listens, accepts, and stops in an orderly way. Read only.
// Beast and Asio are included only in this room, and by none of the headers that the verbs see.
#pragma once

#include <memory>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/server/chunk_cache.hpp"
#include "offline_repo/server/server_options.hpp"

namespace sealift::offline_repo {

class Server {
 public:
  // Listens once this returns; throws Io when it cannot listen there.
  Server(Catalogue catalogue, ServerOptions options);
  ~Server();

  ListenAddress address() const;  // with the real port
  CacheCounts cache() const;      // from any thread

  // Serves until stop(), SIGTERM or SIGINT, which are caught from here on; answers under way are finished first.
  // From here on this process ignores SIGPIPE, which sendfile(2) would raise where a client went away.
  void run();
  void stop();  // from any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sealift::offline_repo
