// SPDX-License-Identifier: Apache-2.0
// What kind of thing a request was for, as metrics count it: a closed list, so that no client can add a series.
#pragma once

#include <array>
#include <string_view>

namespace sealift::offline_repo {

enum class RouteKind {
  Other,
  Front,
  Index,
  Wheel,
  Metadata,
  Hub,
  HubFile,
  ModelScope,
  Registry,
  Blob,
  Apt,
  Rpm,
  Entry,
  Health,
  Metrics
};

inline constexpr std::array<std::string_view, 15> kRouteNames = {
    "other",    "front", "index", "wheel", "metadata", "hub",    "hub_file", "modelscope",
    "registry", "blob",  "apt",   "rpm",   "entry",    "health", "metrics"};

}  // namespace sealift::offline_repo
