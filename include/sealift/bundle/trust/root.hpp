// SPDX-License-Identifier: Apache-2.0
// The root: who may sign what at a site, as a plain value with its one parser and its one writer. It travels as a
// signed envelope (root.N.json); its fingerprint, the SHA-256 of the signed JSON, is what a site pins. Everything that
// makes a root unsafe (a threshold of 0, a key twice, a key of another kind than its label) is refused here, so a
// `Root` can be relied upon; whether a site trusts it is decided in root_chain.hpp.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/trust/envelope.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kRootPayloadType = "application/vnd.sealift.root.v1+json";
inline constexpr std::uint64_t kRootFormat = 1;
inline constexpr std::uint64_t kMaxRootVersion = 1'000'000;
inline constexpr std::size_t kMaxRootSize = std::size_t{512} << 10;  // of the file: the envelope's line
inline constexpr std::size_t kMaxRootChain = 1024;
inline constexpr std::size_t kMaxRootKeys = 64;
inline constexpr std::size_t kMaxRevoked = 2000;

enum class Profile {
  Standard,  // any algorithm that we know
  Fips,      // ECDSA only, from OpenSSL's FIPS provider where there is one
  Gm,        // SM2 with SM3 must be among the signatures of every role
};

// "standard", "fips" or "gm", as roots write it.
std::string name_of(Profile profile);
// The inverse of name_of; every other name is unknown.
std::optional<Profile> find_profile(std::string_view name);

struct RootKey {
  std::string algorithm;  // a name that we need not know
  Bytes spki;

  bool operator==(const RootKey&) const = default;
};

struct Role {
  std::vector<Digest> keys;  // sorted
  std::uint64_t threshold = 1;
  std::vector<std::string> algorithms;  // sorted; at least one signature of each of these kinds

  bool operator==(const Role&) const = default;
};

struct Revocation {
  std::string date;  // RFC 3339, UTC
  std::string reason;

  bool operator==(const Revocation&) const = default;
};
using Revocations = std::map<Digest, Revocation>;

// What has versions of its own: the bundles of one name in one channel.
struct Stream {
  std::string channel;
  std::string name;

  std::string text() const { return channel + "/" + name; }
  auto operator<=>(const Stream&) const = default;
};

struct Root {
  std::string name;
  std::uint64_t version = 1;
  std::string created;
  std::string expires;
  bool strict = false;  // an expired root, or time that cannot be right, is an error instead of a warning
  bool reset = false;   // sites forget the versions and times they saw before: the way out after a stolen key ran ahead
  Profile profile = Profile::Standard;
  std::map<Digest, RootKey> keys;     // by key id
  std::map<std::string, Role> roles;  // "root", "release", and "site" if the site signs too
  Revocations revoked_keys;
  Revocations revoked_bundles;             // by SHA-256 of the manifest
  std::map<Stream, std::uint64_t> floors;  // bundles below are refused, whatever the operator says

  bool operator==(const Root&) const = default;
};

inline constexpr std::string_view kRootRole = "root";
inline constexpr std::string_view kReleaseRole = "release";
inline constexpr std::string_view kSiteRole = "site";

// Deterministic: the same value gives the same bytes.
std::string write_root(const Root& root);
// Throws Format or CannotCheck unless `text` is a root by every rule, spelled as write_root spells it.
Root parse_root(std::string_view text, const std::string& where);

}  // namespace sealift::bundle
