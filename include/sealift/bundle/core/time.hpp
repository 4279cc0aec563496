// SPDX-License-Identifier: Apache-2.0
// Points in time as documents write them: RFC 3339 in UTC, one spelling, whole seconds.
// By hand instead of strftime, which would look for the host's time zone files.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace sealift::bundle {

using Time = std::chrono::sys_seconds;

// What the host's clock says.
Time system_time();

// "2026-01-31T23:59:59Z", for the years 1970 to 9999; what lies outside is written as the nearest of them.
std::string write_time(Time time);
// The inverse of write_time; every other spelling is refused.
std::optional<Time> parse_time(std::string_view text);

}  // namespace sealift::bundle
