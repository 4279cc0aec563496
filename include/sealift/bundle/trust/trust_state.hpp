// SPDX-License-Identifier: Apache-2.0
// What a site remembers of trust, as a value: the root it pinned, the newest root it accepted, and what it has seen
// since, so that old bundles and stopped clocks cannot turn it back. (Revocations are in the root: they only grow.)
// verify() takes a state and returns the next; trust_folder.hpp and the installer keep it on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/trust/root.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kTrustFormat = 2;     // 1 knew of the highest accepted version only
inline constexpr std::size_t kMaxRemembered = 1000;  // accepted versions of one name in a channel, the highest ones

// 64 hexadecimal digits, optionally after "sha256:" and with ':' or spaces between groups, as people copy them.
// Throws Usage for any other text.
Digest parse_fingerprint(std::string_view text);

struct SeenVersion {
  std::uint64_t version = 0;                // the highest that was accepted
  Digest manifest;                          // its identity
  std::uint64_t floor = 0;                  // the highest rollback floor that an accepted bundle named
  std::map<std::uint64_t, Digest> older{};  // accepted versions below the highest one, with their identities

  bool operator==(const SeenVersion&) const = default;
};

struct TrustState {
  std::optional<Digest> pinned;  // fingerprint of the root that an operator pinned; std::nullopt: nobody is trusted
  std::string root;              // the newest accepted root's signed JSON; empty: none was seen yet, only pinned
  std::map<Stream, SeenVersion> seen;
  Time time_floor{};  // the latest time that a trusted signature covers: the true time is not before it

  bool operator==(const TrustState&) const = default;
};

// Deterministic JSON on one line, without a line break.
std::string write_trust_state(const TrustState& state);
// Throws Format, or CannotCheck for another format.
TrustState parse_trust_state(std::string_view text, const std::string& where);

}  // namespace sealift::bundle
