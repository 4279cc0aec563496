// SPDX-License-Identifier: Apache-2.0
// Where a trust state lies on disk: two copies of it, each with a checksum and a counter, so that a torn, cut or lost
// one costs nothing. The installer writes them (PREFIX/trust), the repository only reads; both read through here.
#pragma once

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>

#include "sealift/bundle/core/file.hpp"
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
inline std::string write_trust_copy(const TrustState& state, std::uint64_t counter) {
  const std::string body = std::to_string(counter) + "\n" + write_trust_state(state) + "\n";
  return sha256(as_bytes(body)).hex() + " " + body;
}

namespace detail {

inline void refuse_writable(const std::filesystem::path& path, const struct stat& status) {
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  throw Error(ErrorCode::Usage, {.what = "others may change what this site trusts",
                                 .where = path.string(),
                                 .expected = "writable by its owner only",
                                 .next = "look whether it was changed, then: chmod go-w '" + path.string() + "'"});
}

// Nothing when the copy is not whole.
inline std::optional<StoredTrust> parse_trust_copy(std::string_view text, std::size_t copy, const std::string& where) {
  if (text.size() < 66 || text[64] != ' ' || sha256(as_bytes(text.substr(65))).hex() != text.substr(0, 64))
    return std::nullopt;
  const std::string_view body = text.substr(65);
  StoredTrust stored{.state = {}, .counter = 0, .copy = copy};
  const auto [end, fault] = std::from_chars(body.data(), body.data() + body.size(), stored.counter);
  if (fault != std::errc() || end == body.data() + body.size() || *end != '\n' || body.back() != '\n')
    return std::nullopt;
  const auto skip = static_cast<std::size_t>(end - body.data()) + 1;
  stored.state = parse_trust_state(body.substr(skip, body.size() - skip - 1), where);
  return stored;
}

}  // namespace detail

// The newer of the copies that are whole; nothing when there is none at all. Throws Usage when others may write there,
// Format when copies are there and none is whole.
inline std::optional<StoredTrust> read_trust(const std::filesystem::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw_errno("the trust folder cannot be examined", folder);
  }
  detail::refuse_writable(folder, status);
  std::optional<StoredTrust> newest;
  bool found = false;
  for (std::size_t copy = 0; copy < kTrustCopies.size(); ++copy) {
    const std::filesystem::path path = folder / kTrustCopies[copy];
    if (::lstat(path.c_str(), &status) != 0) continue;
    found = true;
    if (S_ISREG(status.st_mode)) detail::refuse_writable(path, status);
    std::optional<StoredTrust> stored = detail::parse_trust_copy(read_text(path, kMaxTrustFile), copy, path.string());
    if (stored && (!newest || stored->counter > newest->counter)) newest = std::move(stored);
  }
  if (found && !newest)
    throw Error(ErrorCode::Format,
                {.what = "the trust state is damaged, and so is its second copy",
                 .where = folder.string(),
                 .expected = "state.a or state.b as sealift-install wrote it",
                 .next = "restore the folder from a backup; without one, move it away and pin the root again with: "
                         "sealift-install trust add (this forgets which versions were accepted)"});
  return newest;
}

// What a run goes by: the state in `folder`, where there is one; else the root that `fingerprint` names, to be found in
// the bundle. Throws Conflict when a fingerprint is named and another root is pinned, Signature when there is neither.
inline TrustState trust_for_run(const std::filesystem::path& folder, const std::optional<Digest>& fingerprint) {
  std::optional<StoredTrust> stored;
  if (!folder.empty()) stored = read_trust(folder);
  if (!stored && !fingerprint)
    throw Error(ErrorCode::Signature,
                {.what = "no root is pinned, so nobody is trusted",
                 .where = folder.string(),
                 .next = "sealift-install trust add ROOT --fingerprint sha256:... --prefix PREFIX, or --fingerprint"});
  if (!stored) return {.pinned = fingerprint, .root = {}, .seen = {}, .time_floor = {}};
  if (fingerprint && *fingerprint != stored->state.pinned && *fingerprint != sha256(as_bytes(stored->state.root)))
    throw Error(ErrorCode::Conflict,
                {.what = "another root is pinned here",
                 .where = folder.string(),
                 .expected = "sha256:" + stored->state.pinned->hex(),
                 .got = "sha256:" + fingerprint->hex(),
                 .next = "a next root of the same owner: sealift-install trust update ROOT; another owner: another "
                         "--prefix"});
  return std::move(stored->state);
}

}  // namespace sealift::bundle
