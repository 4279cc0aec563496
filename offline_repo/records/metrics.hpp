// SPDX-License-Identifier: Apache-2.0
// What the server has done since its start, and its text in Prometheus' format 0.0.4.
// Counters are added to by every request, so they are atomic; labels come from closed lists and signed manifests.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "offline_repo/chunks/chunk_cache.hpp"
#include "offline_repo/holdings/held_bundle.hpp"
#include "offline_repo/holdings/scrub.hpp"
#include "offline_repo/requests/route_kind.hpp"

namespace sealift::offline_repo {

// The statuses that this server gives; the last place counts any other.
inline constexpr std::array<unsigned, 16> kStatuses = {200, 206, 301, 304, 400, 401, 403, 404,
                                                       405, 406, 413, 416, 431, 500, 503, 0};

// Safe from several threads.
class Metrics {
 public:
  void count(RouteKind route, unsigned status, std::uint64_t bytes);

  std::atomic<std::uint64_t> connections{0}, connections_most{0}, connections_refused{0};
  std::atomic<std::uint64_t> connections_made_room{0};
  std::atomic<std::uint64_t> audit_failures{0};
  std::atomic<std::int64_t> certificate_ends{0};  // seconds since 1970; 0: there is no TLS

  // Bytes of this bundle could not be read, or were wrong.
  void fail(const std::shared_ptr<const bundle::VerifiedBundle>& in, const std::string& reason);
  // Why the server is not healthy: the first reason of a bundle that is served, or that none is; nothing while it is.
  // A reason stays while the bundle does, since bytes that were wrong once are not trusted again by waiting.
  std::optional<std::string> reason(const Held& held) const;

  void forget_failures();

  // The page. `left_out`: how many lines say that a view leaves something out; `scrub`: null where there is none;
  // `names`: the bundles have lines of their own.
  std::string text(const CacheCounts& cache, const Held& held, std::size_t left_out, const ScrubCounts* scrub,
                   bool names) const;

 private:
  using Row = std::array<std::atomic<std::uint64_t>, kStatuses.size()>;

  std::array<Row, kRouteNames.size()> requests_{};
  std::atomic<std::uint64_t> sent_{0};
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::mutex guard_;
  std::map<std::weak_ptr<const bundle::VerifiedBundle>, std::string, std::owner_less<>> reasons_;
};

}  // namespace sealift::offline_repo
