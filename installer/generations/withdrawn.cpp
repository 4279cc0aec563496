// SPDX-License-Identifier: Apache-2.0
#include "installer/generations/withdrawn.hpp"

namespace sealift::installer {

std::string withdrawn_fault(const bundle::Root& root, const GenerationRecord::Bundle& installed) {
  if (const auto itself = root.revoked_bundles.find(installed.identity); itself != root.revoked_bundles.end())
    return "this bundle was withdrawn: " + itself->second.reason;
  for (const bundle::Digest& signer : installed.signers)
    if (const auto key = root.revoked_keys.find(signer); key != root.revoked_keys.end())
      return "a key that signed it was withdrawn: " + key->second.reason;
  const auto floor = root.floors.find({.channel = installed.channel, .name = installed.name});
  if (floor != root.floors.end() && installed.version < floor->second)
    return "the root refuses versions below " + std::to_string(floor->second);
  return {};
}

}  // namespace sealift::installer
