// SPDX-License-Identifier: Apache-2.0
// Counts the signatures of keys that have a role; see role_status.hpp.
#include "packager/keys/role_status.hpp"

#include <algorithm>

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::packager {

namespace {

RoleStatus status(const bundle::Root& root, const std::string& name, const bundle::Envelope& envelope) {
  RoleStatus status{.role = name, .threshold = root.roles.at(name).threshold};
  for (const auto& [id, signature] : envelope.signatures) status.signatures += has_role(root, name, id);
  return status;
}

}  // namespace

bool has_role(const bundle::Root& root, const std::string& name, const bundle::Digest& key) {
  const auto role = root.roles.find(name);
  return role != root.roles.end() && std::binary_search(role->second.keys.begin(), role->second.keys.end(), key);
}

std::vector<bundle::Digest> signers_of(const bundle::Envelope& envelope) {
  std::vector<bundle::Digest> ids;
  for (const auto& [id, signature] : envelope.signatures) ids.push_back(id);
  return ids;
}

std::vector<RoleStatus> bundle_status(const bundle::Root& root, const bundle::Envelope& manifest) {
  std::vector<RoleStatus> roles = {status(root, std::string(bundle::kReleaseRole), manifest)};
  if (root.roles.contains(std::string(bundle::kSiteRole)))
    roles.push_back(status(root, std::string(bundle::kSiteRole), manifest));
  return roles;
}

std::vector<RoleStatus> bundle_status(const bundle::Seal& seal) {
  return bundle_status(bundle::parse_root(seal.roots.back().payload, "root"), seal.manifest);
}

std::vector<RoleStatus> root_status(const bundle::Envelope& root) {
  return {status(bundle::parse_root(root.payload, "root"), std::string(bundle::kRootRole), root)};
}

std::string text_of(const std::vector<RoleStatus>& roles) {
  std::string text;
  for (const RoleStatus& role : roles)
    text += (text.empty() ? "" : ", ") + role.role + " " + std::to_string(role.signatures) + " of " +
            std::to_string(role.threshold);
  return text;
}

bundle::Json roles_json(const std::vector<RoleStatus>& roles) {
  bundle::Json json = bundle::Json::array();
  for (const RoleStatus& role : roles)
    json.push_back({{"role", role.role}, {"signatures", role.signatures}, {"threshold", role.threshold}});
  return json;
}

bundle::Json signers_json(const std::vector<bundle::Digest>& signers) {
  bundle::Json json = bundle::Json::array();
  for (const bundle::Digest& signer : signers) json.push_back(bundle::fingerprint_text(signer));
  return json;
}

}  // namespace sealift::packager
