// SPDX-License-Identifier: Apache-2.0
// --waive PATH=REASON: somebody takes the responsibility for one native file that does not load, by its name. Here,
// since the packager rehearses with the same words that the installer then takes. It excuses a failed load, nothing
// else.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sealift::bundle {

struct Waiver {
  std::string path;    // below the generation, as the self-test names it
  std::string reason;  // one line, for the receipt

  bool operator==(const Waiver&) const = default;
};

inline constexpr std::size_t kMaxWaivers = 100;
inline constexpr std::size_t kMaxWaiverReason = 500;  // bytes

// Throws Usage for what is not PATH=REASON, for a path twice, and for more than kMaxWaivers.
std::vector<Waiver> parse_waivers(const std::vector<std::string>& texts);

}  // namespace sealift::bundle
