// SPDX-License-Identifier: Apache-2.0
// The time as records show it: RFC 3339 in UTC. Nothing is ever decided by it, since isolated clocks are often wrong.
// By hand instead of strftime, which would look for the host's time zone files.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace sealift::installer {

inline std::string now_utc() {
  using namespace std::chrono;
  const auto now = floor<seconds>(system_clock::now());
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", int(date.year()), unsigned(date.month()),
                unsigned(date.day()), int(time.hours().count()), int(time.minutes().count()),
                int(time.seconds().count()));
  return text;
}

}  // namespace sealift::installer
