// SPDX-License-Identifier: Apache-2.0
// What a rank tells the others about itself when one of them has waited long.
// `issued_collectives` writes it, `watch_store` carries it, and the ranks that waited read it.
// A value of its own, so that the store need not know how a rank keeps count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace sealift::train {

/// Where a rank is, in answer to an epoch of the watch.
struct RankReport {
  /// A collective that the rank issued.
  struct Issued {
    std::uint64_t hash = 0;  ///< of its label
    std::string text;        ///< its label for people

    bool operator==(const Issued&) const = default;
  };
  using Place = std::pair<std::string, std::uint64_t>;  ///< group, and number of the collective in it

  std::int64_t epoch = 0;                      ///< that the report answers
  std::map<std::string, std::uint64_t> count;  ///< of issued collectives, by group
  std::map<Place, Issued> issued;              ///< the latest of them, and those about the rank that it waits for
  std::optional<Place> waits;                  ///< the collective that the rank waits for, if it has waited long
  std::string last = "nothing";                ///< the latest collective in any group, for people

  bool operator==(const RankReport&) const = default;
};

/// Reports by rank.
using RankReports = std::map<std::int64_t, RankReport>;

}  // namespace sealift::train
