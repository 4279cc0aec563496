// SPDX-License-Identifier: Apache-2.0
// Ranks of hosts of their own, with measurements that a test has made.
// For the tests of this folder's judges.
// A header, since two sources are fed with them.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify::made {

inline Measured rank_with(std::int64_t rank, nlohmann::json values) {
  return {.rank = rank,
          .host = "host" + std::to_string(rank),
          .device = "cpu",
          .not_run = {},
          .error = {},
          .values = std::move(values)};
}
inline std::string named(std::int64_t rank) {
  return "rank " + std::to_string(rank) + " on host" + std::to_string(rank) + " (cpu)";
}

}  // namespace sealift::verify::made
