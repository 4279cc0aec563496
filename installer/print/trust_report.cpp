// SPDX-License-Identifier: Apache-2.0
// The accepted root is parsed again from its stored text: that text, not a copy of its fields, is what is trusted.
#include "installer/print/trust_report.hpp"

#include "installer/print/signers.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json json_of(const bundle::TrustState& state) {
  const bundle::Root root = bundle::parse_root(state.root, "the accepted root");
  bundle::Json roles = bundle::Json::array(), seen = bundle::Json::array();
  for (const auto& [name, role] : root.roles)
    roles.push_back({{"role", name},
                     {"threshold", role.threshold},
                     {"keys", fingerprints(role.keys)},
                     {"algorithms", role.algorithms}});
  for (const auto& [stream, version] : state.seen)
    seen.push_back({{"channel", stream.channel},
                    {"name", stream.name},
                    {"version", version.version},
                    {"identity", version.manifest.hex()},
                    {"floor", version.floor}});
  return {{"pinned", bundle::fingerprint_text(*state.pinned)},
          {"root",
           {{"version", root.version},
            {"fingerprint", bundle::fingerprint_text(bundle::sha256(bundle::as_bytes(state.root)))},
            {"name", root.name},
            {"profile", bundle::name_of(root.profile)},
            {"expires", root.expires},
            {"strict", root.strict}}},
          {"roles", std::move(roles)},
          {"revoked_keys", root.revoked_keys.size()},
          {"revoked_bundles", root.revoked_bundles.size()},
          {"seen", std::move(seen)},
          {"time_floor", bundle::write_time(state.time_floor)}};
}

bundle::Json json_of(const TrustChange& change) {
  bundle::Json json = json_of(change.state);
  json["changed"] = change.changed;
  return json;
}

std::string text_of(const bundle::TrustState& state) {
  const bundle::Root root = bundle::parse_root(state.root, "the accepted root");
  std::string text =
      "pinned      " + bundle::fingerprint_text(*state.pinned) + "\nroot " + std::to_string(root.version) + "      " +
      bundle::fingerprint_text(bundle::sha256(bundle::as_bytes(state.root))) + "\n            " + root.name +
      ", profile " + bundle::name_of(root.profile) + ", until " + root.expires + (root.strict ? ", strict" : "") + "\n";
  for (const auto& [name, role] : root.roles) {
    text += name + std::string(12 - name.size(), ' ') + std::to_string(role.threshold) + " of " +
            std::to_string(role.keys.size()) + " keys\n";
    for (const bundle::Digest& id : role.keys)
      text += "  " + bundle::fingerprint_text(id) + "  " + root.keys.at(id).algorithm + "\n";
  }
  const auto revoked = [&text](const char* what, const bundle::Revocations& list) {
    for (const auto& [digest, why] : list)
      text += std::string("revoked ") + what + " " + bundle::fingerprint_text(digest) + "  " + why.date + "  " +
              bundle::SafePath::printable(why.reason) + "\n";
  };
  revoked("key   ", root.revoked_keys);
  revoked("bundle", root.revoked_bundles);
  for (const auto& [stream, version] : state.seen)
    text += "accepted    " + stream.text() + " version " + std::to_string(version.version) + ", floor " +
            std::to_string(version.floor) + "\n";
  return text + "time floor  " + bundle::write_time(state.time_floor) + "\n";
}

namespace {

std::string_view name_of(RootVerdict::Kind kind) {
  switch (kind) {
    case RootVerdict::Kind::Prefix:
      return "prefix";
    case RootVerdict::Kind::Generation:
      return "generation";
    case RootVerdict::Kind::Bundle:
      break;
  }
  return "bundle";
}

}  // namespace

bundle::Json json_of(const std::vector<RootVerdict>& verdicts, const bundle::TrustState& next, bool changes) {
  bundle::Json list = bundle::Json::array();
  for (const RootVerdict& verdict : verdicts)
    list.push_back({{"kind", name_of(verdict.kind)},
                    {"place", bundle::SafePath::printable(verdict.place)},
                    {"name", verdict.name},
                    {"refused", !verdict.refusal.empty()},
                    {"refusal", bundle::SafePath::printable(verdict.refusal)}});
  bundle::Json json = json_of(next);
  json["dry_run"] = true;
  json["would_change"] = changes;
  json["judged"] = std::move(list);
  return json;
}

std::string text_of(const std::vector<RootVerdict>& verdicts) {
  std::string refused, accepted;
  for (const RootVerdict& verdict : verdicts) {
    const std::string line = "  " + std::string(name_of(verdict.kind)) + "  " +
                             bundle::SafePath::printable(verdict.place) +
                             (verdict.name.empty() ? "" : "  " + verdict.name);
    if (verdict.refusal.empty())
      accepted += line + "\n";
    else
      refused += line + "\n      " + bundle::SafePath::printable(verdict.refusal) + "\n";
  }
  return (refused.empty() ? std::string("nothing of this would be refused\n")
                          : "would be refused from then on (what is installed stays, and runs):\n" + refused) +
         (accepted.empty() ? "" : "stays accepted:\n" + accepted) + "nothing was changed\n";
}

}  // namespace sealift::installer
