// SPDX-License-Identifier: Apache-2.0
// Look, judge, show, sign; see sign_root.hpp.
#include "packager/keys/sign_root.hpp"

#include <fmt/format.h>

#include "packager/files/replace_text.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/open_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Envelope;
using bundle::Error;
using bundle::ErrorCode;
using bundle::fingerprint_text;

namespace {

Envelope read_one_root(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored) || file.extension() == bundle::kSealSuffix)
    throw Error(ErrorCode::Usage, {.what = "this is a bundle, and no root is signed in one",
                                   .where = file.string(),
                                   .expected = "a root's file, such as root.2.json",
                                   .next = "a bundle is signed by: sealift-pack sign BUNDLE"});
  std::vector<Envelope> roots = bundle::parse_roots(bundle::read_text(file, bundle::kMaxRootSize), file.string());
  if (roots.size() != 1)
    throw Error(ErrorCode::Usage, {.what = "this file holds several roots; sign only the new one",
                                   .where = file.string(),
                                   .expected = "one root"});
  require_payload_type(roots[0], bundle::kRootPayloadType, ErrorCode::Format, "this is no root, and is not signed",
                       file.string());
  return std::move(roots[0]);
}

[[noreturn]] void refuse_other_first_root(const Envelope& envelope, const bundle::Digest& pinned,
                                          const std::string& where) {
  throw Error(ErrorCode::Signature, {.what = "this is not the root that the signer has pinned",
                                     .where = where,
                                     .expected = fingerprint_text(pinned),
                                     .got = fingerprint_text(envelope.digest()),
                                     .next = "compare the fingerprint that `sealift-pack root create` printed"});
}

// The root that `next` follows, judged from the pinned one; nothing for the first root, which is pinned itself.
std::optional<bundle::Root> root_before(const bundle::Root& next, const Envelope& envelope,
                                        const SignOptions& options) {
  const std::string where = options.file.string();
  const bundle::TrustState pinned = pinned_by(options);
  if (next.version == 1) {
    if (*pinned.pinned != envelope.digest()) refuse_other_first_root(envelope, *pinned.pinned, where);
    return std::nullopt;
  }
  if (options.roots.empty() && pinned.root.empty())
    throw Error(ErrorCode::Usage, {.what = "a root is signed only where the one before it is known",
                                   .where = where,
                                   .expected = "--previous root." + std::to_string(next.version - 1) + ".json",
                                   .next = "name all roots from the pinned one on, oldest first"});
  const bundle::TrustState trust = follow_roots(pinned, read_root_files(options.roots), where);
  bundle::Root previous = bundle::parse_root(trust.root, where);
  require_succession(previous, next, where);
  return previous;
}

std::string role_line(const std::string& name, const bundle::Role& role) {
  std::string line = fmt::format("\n  {:<8} {} of {}:", name, role.threshold, role.keys.size());
  for (const bundle::Digest& id : role.keys) line += "\n           " + fingerprint_text(id);
  return line;
}

std::string shown(const bundle::Root& root, const Envelope& envelope, const std::optional<bundle::Root>& previous) {
  const std::size_t size = envelope.payload.size();
  std::string text = fmt::format(
      "to be signed: root {} of {}\n  name     {}, {} bytes, expires {}{}{}\n  digest   {}\n  after    {}",
      root.version, root.name, root.name, size, root.expires, root.strict ? ", after which nothing is accepted" : "",
      root.reset ? "; sites forget accepted versions" : "", fingerprint_text(envelope.digest()),
      previous ? fmt::format("root {} of {}", previous->version, previous->name) : "none: it is the first");
  for (const auto& [name, role] : root.roles) text += role_line(name, role);
  return text +
         fmt::format("\n  revoked  {} key(s), {} bundle(s)", root.revoked_keys.size(), root.revoked_bundles.size());
}

std::string root_role(const bundle::Root& root, const std::optional<bundle::Root>& previous,
                      const bundle::PublicKey& key) {
  const std::string role(bundle::kRootRole);
  if (has_role(root, role, key.id())) return role;
  if (previous && has_role(*previous, role, key.id())) return role + " of the root before";
  throw Error(ErrorCode::Usage, {.what = "this key may not sign roots",
                                 .where = fingerprint_text(key.id()),
                                 .expected = "a key of the role root in root " + std::to_string(root.version) +
                                             (previous ? " or the one before" : ""),
                                 .got = "a key without that role",
                                 .next = "name another --key"});
}

}  // namespace

SignResult sign_root(const SignOptions& options, bundle::Progress& progress) {
  check_ways(options, false);
  bundle::Descriptor lock;
  if (options.export_to.empty()) lock = lock_signed(options.file);
  Envelope envelope = read_one_root(options.file);
  const std::string where = options.file.string();
  const bundle::Root root = bundle::parse_root(envelope.payload, where);
  const std::optional<bundle::Root> previous = root_before(root, envelope, options);
  bundle::check_signatures(envelope, where);

  progress.note(shown(root, envelope, previous));
  add_new_signatures(
      options, envelope, [&](const bundle::PublicKey& key) { return root_role(root, previous, key); }, progress);
  if (options.export_to.empty()) replace_text(options.file, write_envelope(envelope));
  return {.file = options.file,
          .digest = envelope.digest(),
          .signers = signers_of(envelope),
          .roles = root_status(envelope)};
}

}  // namespace sealift::packager
