// SPDX-License-Identifier: Apache-2.0
// Where a trust state lies on disk: two copies of it, each with a checksum and a counter, so that a torn, cut or lost
// one costs nothing. The installer writes them (PREFIX/trust), the repository only reads; both read through here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::bundle {

inline constexpr std::array<const char*, 2> kTrustCopies = {"state.a", "state.b"};
inline constexpr std::uint64_t kMaxTrustFile = std::uint64_t{64} << 20;

struct StoredTrust {
  TrustState state;
  std::uint64_t counter = 0;  // grows with every change
  std::size_t copy = 0;       // which of the two it was read from: the other one is written first
};

// "SHA256 COUNTER\nSTATE\n", where the digest is over everything behind the space.
std::string write_trust_copy(const TrustState& state, std::uint64_t counter);
// The inverse of write_trust_copy; nothing when the copy is not whole.
std::optional<StoredTrust> parse_trust_copy(std::string_view text, std::size_t copy, const std::string& where);

// The newer of the copies that are whole; nothing when there is none at all. Throws Usage when folder or copies are
// another user's, or others may write there or in a folder above; Format when copies are there and none is whole.
std::optional<StoredTrust> read_trust(const std::filesystem::path& folder);

// What a run goes by: the state in `folder`, where there is one; else the root that `fingerprint` names, to be found in
// the bundle. Throws Conflict when a fingerprint is named and another root is pinned, Signature when there is neither.
TrustState trust_for_run(const std::filesystem::path& folder, const std::optional<Digest>& fingerprint);

// The same for a folder that somebody has named as one: Missing where there is no state in it.
TrustState trust_named(const std::filesystem::path& folder, const std::optional<Digest>& fingerprint);

}  // namespace sealift::bundle
