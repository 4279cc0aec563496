// SPDX-License-Identifier: Apache-2.0
// The bodies of foreign_launchers.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/launch/foreign_launchers.hpp>

#include <algorithm>
#include <charconv>

namespace sealift::train::launchers {

SEALIFT_BODY std::optional<std::int64_t> tasks_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number;
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  return std::count(text.begin(), text.end(), '"') / 2;
}

SEALIFT_BODY void refuse_foreign(const Environment& environment) {
  const auto text = [&](const char* name) {
    const char* value = name ? environment(name) : nullptr;
    return std::string(value ? value : "");
  };
  for (const auto& names : kForeign) {
    const auto rank = text(names.rank), size = text(names.size);
    if (rank.empty() || tasks_in(size) == 1) continue;
    TORCH_CHECK(false, names.rank, " is '", rank, "'",
                size.empty() ? "" : c10::str(" and ", names.size, " '", size, "'"), ", so ", names.launcher,
                " started this process as one of several, but not how they meet; give each ",
                "its RANK, and all of them WORLD_SIZE, MASTER_ADDR (rank 0's address) and MASTER_PORT, or start one ",
                "torchrun on each host; where each task is a job of its own, unset ", names.rank);
  }
}

}  // namespace sealift::train::launchers
