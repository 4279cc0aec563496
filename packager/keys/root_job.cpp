// SPDX-License-Identifier: Apache-2.0
// Reads the TOML and fills the root; see root_job.hpp. What makes a root unsafe is refused by bundle::parse_root, which
// reads back what was written.
#include "packager/keys/root_job.hpp"

#include <algorithm>

#include "packager/host/creation_time.hpp"
#include "packager/keys/key_file.hpp"
#include "packager/keys/root_files.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

Digest prefixed_digest(TomlTable& table, const std::string& key) {
  const std::string text = table.string(key);
  const std::optional<Digest> value = text.starts_with("sha256:") ? Digest::from_hex(text.substr(7)) : std::nullopt;
  if (!value) table.refuse(key, "this is not a SHA-256", "sha256: and 64 lower-case hexadecimal digits", text);
  return *value;
}

// A key by the file of its public half, or by its id.
Digest key_id(TomlTable& table, const fs::path& folder) {
  if (table.string("key").starts_with("sha256:")) return prefixed_digest(table, "key");
  return read_public_key(folder / table.string("key")).id();
}

void read_role(TomlTable table, const std::string& name, const fs::path& folder, bundle::Root& root) {
  bundle::Role role{.keys = {}, .threshold = table.integer("threshold"), .algorithms = table.strings("algorithms")};
  for (const std::string& file : table.strings("keys")) {
    const bundle::PublicKey key = read_public_key(folder / file);
    root.keys[key.id()] = {.algorithm = name_of(key.algorithm()), .spki = key.spki()};
    if (std::find(role.keys.begin(), role.keys.end(), key.id()) != role.keys.end())
      table.refuse("keys", "a key is listed twice in a role; it would count once", "each key once", file);
    role.keys.push_back(key.id());
  }
  std::sort(role.keys.begin(), role.keys.end());
  std::sort(role.algorithms.begin(), role.algorithms.end());
  table.done();
  root.roles[name] = std::move(role);
}

bundle::Revocation revocation(TomlTable& table, const bundle::Root& root) {
  return {.date = table.string_or("date", root.created), .reason = table.string("reason")};
}

bundle::Profile profile(TomlTable& table) {
  const std::string text = table.string_or("profile", "standard");
  if (const std::optional<bundle::Profile> known = bundle::find_profile(text)) return *known;
  const bool both = text.find("gm") != text.npos && text.find("fips") != text.npos;
  table.refuse("profile",
               both ? "GM and FIPS ask for different algorithms, so no root can meet both" : "this is not a profile",
               "standard, fips or gm", text, both ? "make two roots and two bundles" : "");
}

// Who steals a key has all of its roles, so that somebody must have wanted it.
void refuse_shared_keys(const TomlTable& table, const bundle::Root& root) {
  std::map<Digest, std::string> roles;
  for (const auto& [name, role] : root.roles)
    for (const Digest& id : role.keys)
      if (const auto [first, added] = roles.emplace(id, name); !added)
        table.refuse("shared_keys", "a key has two roles, so who steals it has both: " + first->second + " and " + name,
                     "each key in one role", bundle::fingerprint_text(id),
                     "make another key, or write shared_keys = true");
}

// What this root keeps of the previous one.
bundle::Root start_from(const fs::path& previous) {
  bundle::Root root;
  if (previous.empty()) return root;
  const bundle::Root before = bundle::parse_root(read_roots({previous}).back().payload, previous.string());
  root.version = before.version + 1;
  root.revoked_keys = before.revoked_keys;
  root.revoked_bundles = before.revoked_bundles;
  root.floors = before.floors;
  return root;
}

// A role cannot have a key that this root, or one before it, revoked.
void refuse_revoked_keys(const TomlTable& table, const bundle::Root& root, const RootJobOptions& options) {
  const bundle::Root before = start_from(options.previous);
  for (const auto& [name, role] : root.roles)
    for (const Digest& id : role.keys)
      if (root.revoked_keys.contains(id)) {
        const bool earlier = before.revoked_keys.contains(id);
        table.refuse(name,
                     earlier ? "this role names a key that was revoked by root " + std::to_string(before.version - 1) +
                                   " or one before it; a revoked key never comes back"
                             : "this role names a key that [[revoked_key]] below revokes",
                     "keys that are not revoked", bundle::fingerprint_text(id) + ": " + root.revoked_keys.at(id).reason,
                     "take that key out of [" + name + "], and put its owner's new key there (sealift-pack keygen)");
      }
}

bundle::Root read_root_job(const RootJobOptions& options) {
  const TomlValue document = read_toml(options.job, ErrorCode::Usage);
  TomlTable table(document, options.job, ErrorCode::Usage);
  const fs::path folder = fs::absolute(options.job).parent_path();
  bundle::Root root = start_from(options.previous);
  root.name = table.string("name");
  root.created = bundle::write_time(creation_time());
  root.expires = table.string("expires");
  if (!bundle::parse_time(root.expires))
    table.refuse("expires", "this is not a time", "like \"2035-01-01T00:00:00Z\"", root.expires);
  root.strict = table.boolean_or("strict", false);
  root.reset = table.boolean_or("reset", false);
  root.profile = profile(table);
  for (const std::string_view role : {bundle::kRootRole, bundle::kReleaseRole, bundle::kSiteRole})
    if (role != bundle::kSiteRole || table.has("site"))
      read_role(table.table(std::string(role)), std::string(role), folder, root);
  if (!table.boolean_or("shared_keys", false)) refuse_shared_keys(table, root);
  for (TomlTable& item : table.tables("revoked_key")) {
    root.revoked_keys[key_id(item, folder)] = revocation(item, root);
    item.done();
  }
  for (TomlTable& item : table.tables("revoked_bundle")) {
    root.revoked_bundles[prefixed_digest(item, "manifest")] = revocation(item, root);
    item.done();
  }
  for (TomlTable& item : table.tables("floor")) {
    root.floors[{.channel = item.string("channel"), .name = item.string("name")}] = item.integer("version");
    item.done();
  }
  refuse_revoked_keys(table, root, options);
  table.done();
  return root;
}

}  // namespace

RootJobResult create_root(const RootJobOptions& options) {
  bundle::Root root = read_root_job(options);
  const bundle::Envelope envelope{
      .payload_type = std::string(bundle::kRootPayloadType), .payload = bundle::write_root(root), .signatures = {}};
  bundle::parse_root(envelope.payload, options.job.string());
  const std::string name = "root." + std::to_string(root.version) + ".json";
  const fs::path file = options.out.empty() ? options.job.parent_path() / name : options.out;
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(file, ignored)))
    throw Error(ErrorCode::Conflict, {.what = "this root exists already and is not overwritten",
                                      .where = file.string(),
                                      .next = "sign it with: sealift-pack sign; or name another file with -o"});
  bundle::write_text(file, write_envelope(envelope));
  return {.file = file, .root = std::move(root), .fingerprint = envelope.digest()};
}

}  // namespace sealift::packager
