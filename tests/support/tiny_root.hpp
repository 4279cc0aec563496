// SPDX-License-Identifier: Apache-2.0
// Roots for tests: as small as they can be, or of several keys with every role. Made by the same writer as real ones.
#pragma once

#include <functional>

#include "sealift/bundle/trust/acceptance.hpp"
#include "sealift/bundle/trust/seal.hpp"

namespace sealift::test {

inline constexpr bundle::Time kNow{std::chrono::sys_days(std::chrono::year(2026) / 6 / 1)};

inline void add_key(bundle::Root& root, const std::string& role, const bundle::PublicKey& key) {
  root.keys[key.id()] = {.algorithm = name_of(key.algorithm()), .spki = key.spki()};
  std::vector<bundle::Digest>& keys = root.roles[role].keys;
  keys.insert(std::lower_bound(keys.begin(), keys.end(), key.id()), key.id());
}

// Who has which role; thresholds are 1 until a test says otherwise.
inline bundle::Root make_root(const std::vector<const bundle::PrivateKey*>& root_keys,
                              const std::vector<const bundle::PrivateKey*>& release_keys,
                              const std::vector<const bundle::PrivateKey*>& site_keys = {}) {
  bundle::Root root{.name = "tests", .created = "2026-01-01T00:00:00Z", .expires = "2036-01-01T00:00:00Z"};
  for (const bundle::PrivateKey* key : root_keys) add_key(root, "root", key->public_key());
  for (const bundle::PrivateKey* key : release_keys) add_key(root, "release", key->public_key());
  for (const bundle::PrivateKey* key : site_keys) add_key(root, "site", key->public_key());
  return root;
}

inline bundle::Envelope signed_document(std::string payload, const std::vector<const bundle::PrivateKey*>& keys,
                                        std::string_view type) {
  bundle::Envelope envelope{.payload_type = std::string(type), .payload = std::move(payload), .signatures = {}};
  for (const bundle::PrivateKey* key : keys) add_signature(envelope, *key);
  return envelope;
}
inline bundle::Envelope signed_root(const bundle::Root& root, const std::vector<const bundle::PrivateKey*>& keys) {
  return signed_document(write_root(root), keys, bundle::kRootPayloadType);
}

// Root 1 of one key that signs everything: the same key, the same root.
inline bundle::Envelope one_key_root(const bundle::PrivateKey& key) {
  return signed_root(make_root({&key}, {&key}), {&key});
}

// The root after `before`, changed by `change`.
inline bundle::Root next_root(bundle::Root before, const std::function<void(bundle::Root&)>& change = {}) {
  ++before.version;
  if (change) change(before);
  return before;
}

inline bundle::Trust pinned(const bundle::Envelope& root) {
  return {.state = {.pinned = root.digest(), .root = {}, .seen = {}, .time_floor = {}}};
}

}  // namespace sealift::test
