// SPDX-License-Identifier: Apache-2.0
// Several wheels at once, each by its directory and small members; see ahead_check.hpp.
#include "packager/pack/ahead_check.hpp"

#include <algorithm>
#include <optional>

#include "packager/network/parallel_requests.hpp"
#include "packager/network/remote_file.hpp"
#include "packager/owners/installed_content.hpp"
#include "packager/owners/place_claims.hpp"
#include "packager/owners/wheel_faults.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr unsigned kLooksAtOnce = 8;

// Without the bytes of a wheel that is not here: its directory and small members are asked of its server. Nothing where
// that cannot be done.
std::optional<Installed> look_ahead(const Content& content, const Cache& cache, const Lock& lock,
                                    const HttpLogins& logins, const StopCheck& check) {
  const fs::path file = file_of(content, cache);
  if (fs::exists(file) || content.kind == Content::Kind::File) return install_content(content, cache, lock);
  const auto* server = std::get_if<FromServer>(&content.origin);
  if (std::holds_alternative<FromText>(content.origin)) return install_file(content);
  if (content.kind != Content::Kind::Wheel || server == nullptr || content.size == 0) return std::nullopt;
  try {
    RemoteFile source(server->url, content.size, logins, check);
    return install_wheel(content, source, lock);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Network) throw;
    return std::nullopt;
  }
}

// Of the wheels that could be looked into. A rule that decides nothing among them may decide with the others.
std::optional<Error> collisions_of(const std::vector<std::optional<Installed>>& seen,
                                   const std::vector<Content>& contents, const Lock& lock) {
  PlaceClaims claims(lock);
  try {
    for (std::size_t i = 0; i < contents.size(); ++i)
      if (seen[i]) claims.claim(contents[i], *seen[i]);
    claims.settle_owners();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Conflict) return error;
  }
  return std::nullopt;
}

}  // namespace

bool check_ahead(const Lock& lock, const std::vector<Content>& contents, const Cache& cache, const HttpLogins& logins,
                 SeenAhead& ahead) {
  std::vector<std::optional<Installed>> seen(contents.size());
  WheelFaults faults(contents.size() + 1);
  parallel_requests(kLooksAtOnce, contents.size(), [&](std::size_t i, const StopCheck& check) {
    try {
      const auto before = ahead.find(contents[i].sha256);
      const bool known = contents[i].kind == Content::Kind::Wheel && before != ahead.end();
      seen[i] = known ? before->second : look_ahead(contents[i], cache, lock, logins, check);
    } catch (const Error& error) {
      if (contents[i].kind != Content::Kind::Wheel || !faults.keep(i, contents[i].owner, error)) throw;
    }
  });
  for (std::size_t i = 0; i < contents.size(); ++i)
    if (contents[i].kind == Content::Kind::Wheel && seen[i]) ahead.emplace(contents[i].sha256, *seen[i]);
  if (faults.any()) {  // and what else is known already, so that it is not the next refusal
    if (const std::optional<Error> collisions = collisions_of(seen, contents, lock))
      faults.keep(contents.size(), "", *collisions);
    faults.refuse();
  }
  const bool all = std::all_of(seen.begin(), seen.end(), [](const auto& one) { return one.has_value(); });
  if (!all) return false;  // what nobody has seen may own a path
  PlaceClaims claims(lock);
  for (std::size_t i = 0; i < contents.size(); ++i) claims.claim(contents[i], *seen[i]);
  claims.settle_owners();
  return true;
}

}  // namespace sealift::packager
