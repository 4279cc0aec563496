// SPDX-License-Identifier: Apache-2.0
// The time as reports and records write it.
#pragma once

#include <ctime>
#include <string>

namespace sealift::verify {

/// Now, in UTC, as ISO 8601 without fractions: "2026-11-24T19:00:00Z".
inline std::string utc_now() {
  const auto now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace sealift::verify
