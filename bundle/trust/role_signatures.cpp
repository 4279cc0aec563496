// SPDX-License-Identifier: Apache-2.0
// Counts the signatures of a role, and says what is missing; see role_signatures.hpp.
#include "sealift/bundle/trust/role_signatures.hpp"

#include <algorithm>
#include <utility>

#include "bundle/core/openssl.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

const char* crypto_properties(const Root& root) {
  return root.profile == Profile::Fips && has_fips_provider() ? "fips=yes" : nullptr;
}

namespace {

// The keys that signed an envelope, sorted by what they are to a role.
struct RoleCount {
  std::vector<Digest> counted;
  std::vector<Digest> unknown;    // of the role, but of a kind that cannot be checked here
  std::vector<Digest> withdrawn;  // revoked; no role names one of these
  std::vector<Digest> strangers;
};

RoleCount count_role(const Root& root, const Role& role, const std::map<Digest, Verdict>& verdicts) {
  RoleCount count;
  for (const auto& [id, verdict] : verdicts) {
    const bool in_role = std::binary_search(role.keys.begin(), role.keys.end(), id);
    (in_role && verdict == Verdict::Holds ? count.counted
     : in_role                            ? count.unknown
     : root.revoked_keys.contains(id)     ? count.withdrawn
                                          : count.strangers)
        .push_back(id);
  }
  return count;
}

// The kinds that the role asks for and that none of `keys` is of.
std::string missing_kinds(const Root& root, const Role& role, const std::vector<Digest>& keys) {
  std::string missing;
  for (const std::string& algorithm : role.algorithms)
    if (std::none_of(keys.begin(), keys.end(),
                     [&](const Digest& id) { return root.keys.at(id).algorithm == algorithm; }))
      missing += (missing.empty() ? "" : ", ") + algorithm;
  return missing;
}
bool is_met(const Root& root, const Role& role, const std::vector<Digest>& keys) {
  return keys.size() >= role.threshold && missing_kinds(root, role, keys).empty();
}

std::string listed(const std::vector<Digest>& keys) {
  std::string text;
  for (const Digest& id : keys) text += (text.empty() ? "" : ", ") + fingerprint_text(id);
  return text;
}

[[noreturn]] void refuse_role(const Root& root, const std::string& name, const RoleCount& count,
                              const std::string& where) {
  const Role& role = root.roles.at(name);
  std::vector<Digest> hoped = count.counted;
  hoped.insert(hoped.end(), count.unknown.begin(), count.unknown.end());
  const std::string threshold = std::to_string(role.threshold), missing = missing_kinds(root, role, count.counted);
  std::string got = listed(count.counted);
  const auto add = [&got](const std::string& what, const std::string& keys) {
    if (!keys.empty()) got += (got.empty() ? "" : "; ") + what + keys;
  };
  add("of a kind that cannot be checked here: ", listed(count.unknown));
  add("keys without that role: ", listed(count.strangers));
  for (const Digest& id : count.withdrawn) {
    const Revocation& why = root.revoked_keys.at(id);
    add("revoked on " + why.date + " (" + SafePath::printable(why.reason) + "): ", listed({id}));
  }
  const auto [code, next] =
      is_met(root, role, hoped)
          ? std::pair(ErrorCode::CannotCheck, "use a newer sealift-install, whose crypto library has that kind")
      : !count.withdrawn.empty()
          ? std::pair(ErrorCode::Revoked, "ask the sender for one that is signed by keys that are still good")
          : std::pair(ErrorCode::Signature, "ask the sender for the missing signatures: sealift-pack sign");
  throw Error(code, {.what = std::to_string(count.counted.size()) + " of " + threshold + " " + name +
                             " signatures that this site's root asks for" +
                             (missing.empty() ? "" : "; none of kind " + missing),
                     .where = where,
                     .expected = threshold + " of " + listed(role.keys),
                     .got = got.empty() ? "no signature at all" : got,
                     .next = next});
}

}  // namespace

std::vector<Digest> require_role(const Root& root, const std::string& name, const std::map<Digest, Verdict>& verdicts,
                                 const std::string& where) {
  RoleCount count = count_role(root, root.roles.at(name), verdicts);
  if (!is_met(root, root.roles.at(name), count.counted)) refuse_role(root, name, count, where);
  return std::move(count.counted);
}

namespace {

bool has_role(const Root& root, const std::string& name, const Digest& id) {
  const auto role = root.roles.find(name);
  return role != root.roles.end() && std::binary_search(role->second.keys.begin(), role->second.keys.end(), id);
}

}  // namespace

std::vector<Digest> check_role(const Root& root, const std::string& name, const Envelope& envelope,
                               const std::string& where) {
  auto verdicts = check_signatures(envelope, where, crypto_properties(root),
                                   [&](const Digest& id) { return has_role(root, name, id); });
  for (const auto& [id, signature] : envelope.signatures)
    verdicts.try_emplace(id, Verdict::CannotCheck);  // without the role: only named, should the role not be met
  return require_role(root, name, verdicts, where);
}

void check_other_signatures(const Root& root, const std::vector<std::string>& names, const Envelope& envelope,
                            const std::string& where) {
  check_signatures(envelope, where, crypto_properties(root), [&](const Digest& id) {
    return std::none_of(names.begin(), names.end(), [&](const std::string& name) { return has_role(root, name, id); });
  });
}

}  // namespace sealift::bundle
