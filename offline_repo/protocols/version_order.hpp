// SPDX-License-Identifier: Apache-2.0
// The order of Python versions (PEP 440), for the page that names a project's newest one. What is resolved is the
// clients' own work; nothing here is compared with a requirement.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace sealift::offline_repo {

// A number of any length: its digits' count, and they, without zeros in front.
using VersionNumber = std::pair<std::size_t, std::string>;

struct VersionOrder {
  VersionNumber epoch;
  std::vector<VersionNumber> release;  // without zeros at its end
  std::pair<int, VersionNumber> pre;   // 0: a development version alone, 1: a, 2: b, 3: rc, 4: none
  std::pair<int, VersionNumber> post;  // 0: none, 1
  std::pair<int, VersionNumber> dev;   // 0, 1: none
  std::vector<std::tuple<int, VersionNumber, std::string>> local;  // a text, then a number

  bool is_pre_release() const { return pre.first < 4 || dev.first == 0; }
  auto operator<=>(const VersionOrder&) const = default;
};

// Nothing where `version` breaks PEP 440.
std::optional<VersionOrder> version_order(std::string_view version);

}  // namespace sealift::offline_repo
