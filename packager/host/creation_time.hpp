// SPDX-License-Identifier: Apache-2.0
// When a lock or a root says it was made: SOURCE_DATE_EPOCH, as reproducible builds set it, else now.
#pragma once

#include <charconv>
#include <cstdlib>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::packager {

inline bundle::Time creation_time() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr) return bundle::system_time();
  const std::string_view text = epoch;
  std::int64_t seconds = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc() || end != text.data() + text.size())
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "SOURCE_DATE_EPOCH is not a number of seconds", .got = epoch});
  return bundle::Time(std::chrono::seconds(seconds));
}

}  // namespace sealift::packager
