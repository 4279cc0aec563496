// SPDX-License-Identifier: Apache-2.0
// Ranks as threads that report what they catch, as a program does: tests of disagreements and failures, over Gloo and
// over an engine on a device.
#pragma once

#include <sealift/train.hpp>

#include "tests/support/ranks.hpp"

#include <doctest/doctest.h>

namespace sealift::test {

inline std::string first_line(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

/// Runs `body(groups, rank)` as every rank of `mesh`; returns what each rank caught and reported.
template <class Body>
std::vector<std::string> what_ranks_say(train::Mesh mesh, Body body, train::GroupOptions options = {},
                                        std::chrono::milliseconds timeout = std::chrono::seconds(8)) {
  std::vector<std::string> said(static_cast<std::size_t>(mesh.world_size()));
  on_ranks(
      mesh.world_size(),
      [&](const train::World& world) {
        const auto groups = train::make_groups(world, mesh, options);
        try {
          body(groups, world.rank);
        } catch (const std::exception& error) {
          groups.report_failure(first_line(error));
          said[static_cast<std::size_t>(world.rank)] = first_line(error);
        }
      },
      timeout);
  return said;
}

inline bool says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("'" << text << "' does not say '" << part << "'");
  return false;
}

inline void gather(const train::Groups& groups, const std::string& unit, std::int64_t n = 2,
                   at::ScalarType dtype = at::kFloat) {
  auto group = groups.shard;
  auto whole = torch::empty({group.size() * n}, dtype);
  group.all_gather(whole, torch::ones({n}, dtype), unit).wait();
}

inline void reduce(const train::Groups& groups, const std::string& unit, std::int64_t n = 3, std::uint64_t detail = 0) {
  auto group = groups.shard;
  auto part = torch::empty({n});
  group.reduce_scatter(part, torch::ones({group.size() * n}), unit, detail).wait();
}

}  // namespace sealift::test
