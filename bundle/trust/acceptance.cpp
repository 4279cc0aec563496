// SPDX-License-Identifier: Apache-2.0
// The judgements of a site, one after the other; see acceptance.hpp.
#include "sealift/bundle/trust/acceptance.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::bundle {
namespace {

constexpr std::chrono::hours kClockSlack{24};  // that a clock may be behind before it is mentioned

// The identity under which a site has accepted this version.
std::optional<Digest> accepted_as(const SeenVersion& seen, std::uint64_t version) {
  if (version == seen.version) return seen.manifest;
  const auto older = seen.older.find(version);
  return older == seen.older.end() ? std::nullopt : std::optional(older->second);
}

}  // namespace

void refuse_revoked(const Root& root, const Digest& identity, const std::string& where) {
  const auto found = root.revoked_bundles.find(identity);
  if (found == root.revoked_bundles.end()) return;
  throw Error(ErrorCode::Revoked,
              {.what = "this bundle was withdrawn: " + SafePath::printable(found->second.reason),
               .where = where,
               .expected = "a bundle that root " + std::to_string(root.version) + " does not revoke",
               .got = fingerprint_text(identity) + ", revoked on " + found->second.date,
               .next = "ask the sender for a newer one; what is installed keeps working"});
}

void refuse_rollback(const Trust& trust, const Root& root, const Manifest& manifest, const Digest& identity,
                     const std::string& where) {
  const Stream stream{.channel = manifest.channel, .name = manifest.name};
  const auto seen = trust.state.seen.find(stream);
  const bool known = seen != trust.state.seen.end();
  const auto floor = root.floors.find(stream);
  const std::uint64_t lowest = std::max(floor == root.floors.end() ? 0 : floor->second, known ? seen->second.floor : 0);
  const auto refuse = [&](ErrorCode code, std::string what, std::string expected, std::string got, std::string next) {
    throw Error(code, {.what = std::move(what),
                       .where = where + ", " + stream.text(),
                       .expected = std::move(expected),
                       .got = std::move(got),
                       .next = std::move(next)});
  };
  const std::string version = "version " + std::to_string(manifest.version);
  if (manifest.version < lowest)
    refuse(ErrorCode::Rollback, "the bundle is below the rollback floor",
           "version " + std::to_string(lowest) + " or newer", version,
           "ask the sender for a newer one; no option allows this");
  if (!known) return;
  const std::optional<Digest> before = accepted_as(seen->second, manifest.version);
  if (before && *before != identity)
    refuse(ErrorCode::Equivocation, "another bundle with this name and version was accepted before",
           fingerprint_text(*before), fingerprint_text(identity),
           "ask the sender which of the two is theirs, and why there are two; no option allows this");
  if (manifest.version < seen->second.version && !trust.allow_downgrade)
    refuse(ErrorCode::Rollback, "the bundle is older than one that this site has accepted",
           "version " + std::to_string(seen->second.version) + " or newer", version,
           "an older environment that is installed: sealift-install switch N; to take this one in: --allow-downgrade");
}

void refuse_unsandboxed_builds(const Manifest& manifest, const std::string& where) {
  const std::vector<std::string> names = wheels_built(manifest, WheelBuild::Unsandboxed);
  if (names.empty()) return;
  throw Error(ErrorCode::Conflict,
              {.what = std::to_string(names.size()) + " wheel(s) were built outside of a sandbox, which is not allowed",
               .where = where,
               .expected = "wheels that were published, or built in a sandbox (--sandboxed-builds-only)",
               .got = few_of(names),
               .next = "ask the sender to pack again without --unsandboxed-builds"});
}

std::vector<std::string> judge_time(const TrustState& state, const Root& root, Time now, const std::string& where) {
  std::vector<std::string> warnings;
  if (now + kClockSlack < state.time_floor)
    warnings.push_back("this machine's clock says " + write_time(now) + ", but a trusted signature is from " +
                       write_time(state.time_floor) + ": the later one is used");
  const Time time = std::max(now, state.time_floor);
  if (time <= *parse_time(root.expires)) return warnings;
  if (root.strict)
    throw Error(ErrorCode::Revoked, {.what = "the root has expired, and it says that this is an error",
                                     .where = where + ", root " + std::to_string(root.version),
                                     .expected = "a root that is valid at " + write_time(time),
                                     .got = "expired on " + root.expires,
                                     .next = "get the next root: sealift-install trust update ROOT; if the clock is "
                                             "wrong, set it; what is installed keeps working"});
  warnings.push_back("root " + std::to_string(root.version) + " (" + root.name + ") expired on " + root.expires +
                     ": ask its owner for the next one");
  return warnings;
}

TrustState remember(TrustState state, const Manifest& manifest, const Digest& identity) {
  const auto [there, fresh] = state.seen.try_emplace(Stream{.channel = manifest.channel, .name = manifest.name});
  SeenVersion& seen = there->second;
  if (!fresh && manifest.version > seen.version) seen.older.emplace(seen.version, seen.manifest);
  if (!fresh && manifest.version < seen.version) seen.older.emplace(manifest.version, identity);
  if (seen.older.size() > kMaxRemembered) seen.older.erase(seen.older.begin());
  if (manifest.version >= seen.version) {
    seen.version = manifest.version;
    seen.manifest = identity;
  }
  seen.floor = std::max(seen.floor, manifest.rollback_floor);
  state.time_floor = std::max(state.time_floor, *parse_time(manifest.created));
  return state;
}

}  // namespace sealift::bundle
