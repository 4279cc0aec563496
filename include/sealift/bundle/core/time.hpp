// SPDX-License-Identifier: Apache-2.0
// Points in time as documents write them: RFC 3339 in UTC, one spelling, whole seconds.
// By hand instead of strftime, which would look for the host's time zone files.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace sealift::bundle {

using Time = std::chrono::sys_seconds;

inline Time system_time() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

// "2026-01-31T23:59:59Z", for the years 1970 to 9999; what lies outside is written as the nearest of them.
inline std::string write_time(Time time) {
  using namespace std::chrono;
  time = std::clamp(time, Time{}, Time(sys_days(year(9999) / 12 / 31)) + hours(23) + minutes(59) + seconds(59));
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", int(date.year()), unsigned(date.month()),
                unsigned(date.day()), int(clock.hours().count()), int(clock.minutes().count()),
                int(clock.seconds().count()));
  return text;
}

// The inverse of write_time; every other spelling is refused.
inline std::optional<Time> parse_time(std::string_view text) {
  using namespace std::chrono;
  if (text.size() != 20) return std::nullopt;
  const auto number = [text](std::size_t begin, std::size_t count) {
    int value = 0;
    for (const char c : text.substr(begin, count)) {
      if (c < '0' || c > '9') return -1;
      value = value * 10 + (c - '0');
    }
    return value;
  };
  const int y = number(0, 4), mo = number(5, 2), d = number(8, 2), h = number(11, 2), mi = number(14, 2),
            s = number(17, 2);
  const year_month_day date(year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d)));
  if (y < 1970 || mo < 0 || d < 0 || !date.ok() || h < 0 || h > 23 || mi < 0 || mi > 59 || s < 0 || s > 59)
    return std::nullopt;
  const Time time = Time(sys_days(date)) + hours(h) + minutes(mi) + seconds(s);
  if (write_time(time) != text) return std::nullopt;
  return time;
}

}  // namespace sealift::bundle
