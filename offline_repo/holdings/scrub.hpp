// SPDX-License-Identifier: Apache-2.0
// Reads every chunk of every bundle that is held, slowly and for ever, so that what has rotted is known before somebody
// asks for it. One chunk at a time, past the server's cache, which says nothing about a disc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>

#include "offline_repo/holdings/held_bundle.hpp"
#include "offline_repo/holdings/rotten_chunks.hpp"

namespace sealift::offline_repo {

// What it has done since the start.
struct ScrubCounts {
  std::atomic<std::uint64_t> bytes{0}, failures{0}, rounds{0};
};

class Scrub {
 public:
  // `rate`: bytes a second. `on_change` is called after a chunk has been found wrong, or right again.
  Scrub(RottenChunks& rotten, ScrubCounts& counts, std::uint64_t rate, std::function<void()> on_change)
      : rotten_(rotten), counts_(counts), rate_(rate), on_change_(std::move(on_change)) {}

  // The bundles to read from now on; new ones go behind the ones under way. From any thread.
  void take(const Held& held);
  void run(const std::stop_token& stop);

 private:
  using InBundle = RottenChunks::InBundle;

  std::vector<Contents> bundles();
  bool is_held(const InBundle& in);
  // Whether all of it was read, and was right.
  bool read_all(const InBundle& in, const std::stop_token& stop);
  bool read(const InBundle& in, std::uint64_t chunk);
  void rest(const std::stop_token& stop, std::uint64_t bytes);

  RottenChunks& rotten_;
  ScrubCounts& counts_;
  const std::uint64_t rate_;
  const std::function<void()> on_change_;
  bundle::ChunkBuffer memory_;
  std::mutex guard_;  // of what follows
  std::vector<Contents> held_;
};

}  // namespace sealift::offline_repo
