// SPDX-License-Identifier: Apache-2.0
// Look, judge, show, sign; see sign.hpp. The order is that of a verifier: nothing of the manifest is shown before the
// chain from the pinned root was checked, and no key is opened before the manifest was.
#include "packager/keys/sign.hpp"

#include <fmt/format.h>

#include "packager/files/replace_text.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/open_bundle.hpp"
#include "sealift/bundle/trust/acceptance.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::fingerprint_text;

namespace {

bundle::OpenBundle open_bundle(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored) && path.extension() != bundle::kSealSuffix)
    throw Error(ErrorCode::Usage, {.what = "this is not a bundle",
                                   .where = path.string(),
                                   .expected = "a bundle's folder, or its .seal",
                                   .next = "a root is signed by: sealift-pack root sign ROOT"});
  return bundle::open(path);
}

// The manifest by every rule that can be checked without the volumes.
bundle::Manifest judged_manifest(const bundle::OpenBundle& opened) {
  const std::string where = opened.seal_path.string();
  require_payload_type(opened.seal.manifest, bundle::kBundlePayloadType, ErrorCode::Format,
                       "the last line of this seal is no bundle, and is not signed", where);
  bundle::check_signatures(opened.seal.manifest, where);
  bundle::Manifest manifest = bundle::parse_manifest(opened.seal.manifest.payload, where);
  if (opened.seal_path.filename() != manifest.stem() + std::string(bundle::kSealSuffix))
    throw Error(ErrorCode::Conflict, {.what = "the seal is not named as the bundle it seals",
                                      .where = where,
                                      .expected = manifest.stem() + std::string(bundle::kSealSuffix)});
  return manifest;
}

std::string builds_shown(const bundle::Manifest& manifest) {
  const auto names = [&](bundle::WheelBuild build) { return bundle::few_of(wheels_built(manifest, build)); };
  return fmt::format("in a sandbox {}; outside of one {}", names(bundle::WheelBuild::Sandboxed),
                     names(bundle::WheelBuild::Unsandboxed));
}

std::string shown(const bundle::Manifest& manifest, const bundle::Root& root, const bundle::Seal& seal) {
  return fmt::format(
      "to be signed: the bundle {}\n"
      "  name     {}, version {}, channel {}, of {}\n"
      "  for      {}, glibc {}\n"
      "  carries  {} entries, {} in {} volume(s){}\n"
      "  built    {}\n"
      "  digest   {}\n"
      "  by       root {} of {}, {}\n"
      "  roles    {}",
      manifest.stem(), manifest.name, manifest.version, manifest.channel, manifest.created, manifest.target.arch,
      manifest.target.glibc.text(), manifest.entries.size(), bundle::human_size(manifest.payload.size),
      manifest.payload.volumes.size(), manifest.base ? ", a delta" : "", builds_shown(manifest),
      fingerprint_text(seal.manifest.digest()), root.version, root.name,
      fingerprint_text(bundle::sha256(bundle::as_bytes(write_root(root)))),
      text_of(bundle_status(root, seal.manifest)));
}

}  // namespace

std::string bundle_roles(const bundle::Root& root, const bundle::PublicKey& key) {
  std::string roles;
  for (const std::string_view role : {bundle::kReleaseRole, bundle::kSiteRole})
    if (has_role(root, std::string(role), key.id())) roles += (roles.empty() ? "" : " and ") + std::string(role);
  if (!roles.empty()) return roles;
  const auto revoked = root.revoked_keys.find(key.id());
  throw Error(
      revoked == root.revoked_keys.end() ? ErrorCode::Usage : ErrorCode::Revoked,
      {.what = "this key may not sign bundles",
       .where = fingerprint_text(key.id()),
       .expected = "a key of the role release or site in root " + std::to_string(root.version),
       .got = revoked == root.revoked_keys.end() ? "a key without that role"
                                                 : "revoked on " + revoked->second.date + ": " + revoked->second.reason,
       .next = "name another --key, or the --root that gives it the role"});
}

bundle::TrustState pinned_by(const SignOptions& options) {
  if (!options.fingerprint && options.trust.empty())
    throw Error(ErrorCode::Usage,
                {.what = "nothing says whom the signer trusts, and the roots in the file prove nothing by themselves",
                 .where = options.file.string(),
                 .expected = "--fingerprint sha256:… of a root, or --trust FOLDER, a trust folder of sealift-install",
                 .next = "take the fingerprint from paper, not from where the file came from"});
  return bundle::trust_named(options.trust, options.fingerprint);
}

SignResult sign(const SignOptions& options, bundle::Progress& progress) {
  check_ways(options, !options.roots.empty());
  const bundle::TrustState pinned = pinned_by(options);
  bundle::OpenBundle opened = open_bundle(options.file);
  bundle::Descriptor lock;
  if (options.export_to.empty()) {
    lock = lock_signed(opened.seal_path);
    opened = open_bundle(options.file);  // somebody may have signed it meanwhile
  }
  const std::string where = opened.seal_path.string();
  if (!options.roots.empty()) opened.seal.roots = read_root_files(options.roots);
  const bundle::TrustState trust = follow_roots(pinned, opened.seal.roots, where);
  if (!options.roots.empty()) bundle::read_root_chain(opened.seal.roots, where);  // they are written: the old ones, too
  const bundle::Root root = bundle::parse_root(trust.root, where);
  const bundle::Manifest manifest = judged_manifest(opened);
  refuse_revoked(root, opened.seal.manifest.digest(), where);
  if (options.sandboxed_builds_only) bundle::refuse_unsandboxed_builds(manifest, where);
  for (const std::string& warning : judge_time(trust, root, bundle::system_time(), where)) progress.warn(warning);

  progress.note(shown(manifest, root, opened.seal));
  add_new_signatures(
      options, opened.seal.manifest, [&](const bundle::PublicKey& key) { return bundle_roles(root, key); }, progress);
  if (options.export_to.empty()) replace_text(opened.seal_path, write_seal(opened.seal));
  return {.file = opened.seal_path,
          .digest = opened.seal.manifest.digest(),
          .signers = signers_of(opened.seal.manifest),
          .roles = bundle_status(root, opened.seal.manifest)};
}

}  // namespace sealift::packager
