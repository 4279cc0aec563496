// SPDX-License-Identifier: Apache-2.0
// Writes and reads RFC 3339 by hand; see time.hpp.
#include "sealift/bundle/core/time.hpp"

#include <algorithm>
#include <cstdio>

namespace sealift::bundle {

Time system_time() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string write_time(Time time) {
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

std::optional<Time> parse_time(std::string_view text) {
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
