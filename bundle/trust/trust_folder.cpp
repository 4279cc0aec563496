// SPDX-License-Identifier: Apache-2.0
// Reads the two copies and picks one; see trust_folder.hpp.
#include "sealift/bundle/trust/trust_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "bundle/host/require_trusted.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::bundle {
namespace {

constexpr const char* kOthers = "another user may change what this site trusts";

void refuse_writable(const std::filesystem::path& path, const struct stat& status) {
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  throw Error(ErrorCode::Usage, {.what = "others may change what this site trusts",
                                 .where = path.string(),
                                 .expected = "writable by its owner only",
                                 .next = "look whether it was changed, then: chmod go-w '" + path.string() + "'"});
}

}  // namespace

std::string write_trust_copy(const TrustState& state, std::uint64_t counter) {
  const std::string body = std::to_string(counter) + "\n" + write_trust_state(state) + "\n";
  return sha256(as_bytes(body)).hex() + " " + body;
}

std::optional<StoredTrust> parse_trust_copy(std::string_view text, std::size_t copy, const std::string& where) {
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

std::optional<StoredTrust> read_trust(const std::filesystem::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw_errno("the trust folder cannot be examined", folder);
  }
  refuse_writable(folder, status);
  require_trusted_path(folder, Above::Site, kOthers);
  std::optional<StoredTrust> newest;
  bool found = false;
  for (std::size_t copy = 0; copy < kTrustCopies.size(); ++copy) {
    const std::filesystem::path path = folder / kTrustCopies[copy];
    if (::lstat(path.c_str(), &status) != 0) continue;
    found = true;
    if (S_ISREG(status.st_mode)) {
      refuse_writable(path, status);
      require_trusted_path(path, Above::Site, kOthers);
    }
    std::optional<StoredTrust> stored = parse_trust_copy(read_text(path, kMaxTrustFile), copy, path.string());
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

TrustState trust_for_run(const std::filesystem::path& folder, const std::optional<Digest>& fingerprint) {
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
                 .expected = fingerprint_text(*stored->state.pinned),
                 .got = fingerprint_text(*fingerprint),
                 .next = "a next root of the same owner: sealift-install trust update ROOT; another owner: another "
                         "--prefix"});
  return std::move(stored->state);
}

TrustState trust_named(const std::filesystem::path& folder, const std::optional<Digest>& fingerprint) {
  if (!folder.empty() && !read_trust(folder))
    throw Error(ErrorCode::Missing, {.what = "there is no trust folder",
                                     .where = folder.string(),
                                     .expected = "a folder with state.a or state.b, such as PREFIX/trust",
                                     .next = "correct the path; where a site has none yet, leave --trust out and name "
                                             "its root: --fingerprint sha256:..."});
  return trust_for_run(folder, fingerprint);
}

}  // namespace sealift::bundle
