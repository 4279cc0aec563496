// SPDX-License-Identifier: Apache-2.0
// When a lock or a root says it was made: SOURCE_DATE_EPOCH, as reproducible builds set it, else now.
#pragma once

#include <charconv>
#include <cstdlib>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::packager {

// Throws Usage for a clock that was never set: a root that is dated so would have expired before it is used.
inline bundle::Time creation_time(bundle::Time now = bundle::system_time()) {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr && now < *bundle::parse_time("2024-01-01T00:00:00Z"))  // before the first line of this program
    throw bundle::Error(bundle::ErrorCode::Usage, {.what = "this machine's clock is wrong",
                                                   .expected = "the date of today, which locks and roots will bear",
                                                   .got = bundle::write_time(now),
                                                   .next = "set the clock, or name a date by SOURCE_DATE_EPOCH"});
  if (epoch == nullptr) return now;
  const std::string_view text = epoch;
  std::int64_t seconds = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc() || end != text.data() + text.size())
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "SOURCE_DATE_EPOCH is not a number of seconds", .got = epoch});
  return bundle::Time(std::chrono::seconds(seconds));
}

}  // namespace sealift::packager
