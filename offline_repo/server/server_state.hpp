// SPDX-License-Identifier: Apache-2.0
// What all connections of a server share: the catalogue, the options, the chunks that were checked, the event loop, and
// whether it is stopping.
// The server owns it and outlives its connections.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/server/chunk_cache.hpp"
#include "offline_repo/server/pages.hpp"
#include "offline_repo/server/server_options.hpp"

namespace sealift::offline_repo {

struct ServerState {
  Catalogue catalogue;
  Pages pages{catalogue};
  ServerOptions options;
  ChunkCache cache{options.cache_bytes, options.cache_files};
  boost::asio::io_context context;
  std::atomic<bool> stopping{false};
};

}  // namespace sealift::offline_repo
