// SPDX-License-Identifier: Apache-2.0
// Signs; see sign.hpp. A changed file is written beside the old one and renamed over it.
#include "packager/keys/sign.hpp"

#include "packager/keys/key_file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Envelope;
using bundle::Error;
using bundle::ErrorCode;

namespace {

std::vector<bundle::Digest> signers_of(const Envelope& envelope) {
  std::vector<bundle::Digest> ids;
  for (const auto& [id, signature] : envelope.signatures) ids.push_back(id);
  return ids;
}

void replace_file(const fs::path& file, std::string_view text) {
  const fs::path beside = file.string() + ".partial";
  std::error_code ignored;
  fs::remove(beside, ignored);
  bundle::write_text(beside, text);
  fs::rename(beside, file);
}

// The document to sign, and how it is written back.
struct Document {
  fs::path file;
  bundle::Seal seal;       // of a bundle
  bool is_bundle = false;  // else `seal.manifest` holds the root's envelope

  Envelope& envelope() { return seal.manifest; }
  std::string text() const { return is_bundle ? write_seal(seal) : write_envelope(seal.manifest); }
};

Document read_document(const fs::path& path) {
  if (fs::is_directory(path) || path.extension() == bundle::kSealSuffix) {
    bundle::OpenBundle opened = bundle::open(path);
    bundle::check_signatures(opened.seal.manifest, opened.seal_path.string());
    return {.file = opened.seal_path, .seal = std::move(opened.seal), .is_bundle = true};
  }
  std::vector<Envelope> roots = bundle::parse_roots(bundle::read_text(path, bundle::kMaxRootSize), path.string());
  if (roots.size() != 1)
    throw Error(ErrorCode::Usage, {.what = "this file holds several roots; sign the one that is new",
                                   .where = path.string(),
                                   .expected = "one root"});
  bundle::parse_root(roots[0].payload, path.string());
  bundle::check_signatures(roots[0], path.string());
  return {.file = path, .seal = {.roots = {}, .manifest = std::move(roots[0])}};
}

SignResult result_of(Document& document) {
  return {.file = document.file,
          .digest = document.envelope().digest(),
          .signers = signers_of(document.envelope()),
          .roles = document.is_bundle ? bundle_status(document.seal) : root_status(document.envelope())};
}

void check_arguments(const SignOptions& options) {
  const int ways = int(!options.keys.empty() || !options.roots.empty()) + int(!options.export_to.empty()) +
                   int(!options.import_from.empty());
  if (ways != 1 || options.import_from.empty() != options.public_key.empty())
    throw Error(
        ErrorCode::Usage,
        {.what = "exactly one thing must be asked for",
         .expected = "--key KEY or --root ROOT (or both), --export OUT, or --import SIGNATURE --public-key PUB"});
}

}  // namespace

std::vector<Envelope> read_roots(const std::vector<fs::path>& files) {
  std::vector<Envelope> chain;
  for (const fs::path& file : files)
    for (Envelope& root : bundle::parse_roots(bundle::read_text(file, bundle::kMaxSealSize), file.string()))
      chain.push_back(std::move(root));
  bundle::read_root_chain(chain, files.back().string());
  return chain;
}

void require_release_role(const std::vector<Envelope>& chain, const bundle::PublicKey& key) {
  const bundle::Root root = bundle::parse_root(chain.back().payload, "root");
  if (has_role(root, std::string(bundle::kReleaseRole), key.id()) ||
      has_role(root, std::string(bundle::kSiteRole), key.id()))
    return;
  const auto revoked = root.revoked_keys.find(key.id());
  throw Error(
      revoked == root.revoked_keys.end() ? ErrorCode::Usage : ErrorCode::Revoked,
      {.what = "this key may not sign bundles",
       .where = bundle::fingerprint_text(key.id()),
       .expected = "a key of the role release or site in root " + std::to_string(root.version),
       .got = revoked == root.revoked_keys.end() ? "a key without that role"
                                                 : "revoked on " + revoked->second.date + ": " + revoked->second.reason,
       .next = "name another --key, or the --root that gives it the role"});
}

SignResult sign(const SignOptions& options) {
  check_arguments(options);
  Document document = read_document(options.file);
  Envelope& envelope = document.envelope();
  if (!options.export_to.empty()) {
    bundle::write_text(options.export_to, bundle::as_text(message_of(envelope)));
    return result_of(document);
  }
  if (!options.roots.empty()) {
    if (!document.is_bundle)
      throw Error(ErrorCode::Usage, {.what = "--root is for bundles", .where = document.file.string()});
    document.seal.roots = read_roots(options.roots);
  }
  std::vector<bundle::PrivateKey> keys;
  for (const fs::path& file : options.keys) keys.push_back(read_private_key(file, options.passphrase));
  for (const bundle::PrivateKey& key : keys) {
    if (document.is_bundle) require_release_role(document.seal.roots, key.public_key());
    add_signature(envelope, key);
  }
  if (!options.import_from.empty()) {
    const bundle::PublicKey key = read_public_key(options.public_key);
    if (document.is_bundle) require_release_role(document.seal.roots, key);
    const std::string text = bundle::read_text(options.import_from, 16384);
    const bundle::ByteView view = bundle::as_bytes(text);
    add_signature(envelope, key, bundle::Bytes(view.begin(), view.end()));
  }
  replace_file(document.file, document.text());
  return result_of(document);
}

}  // namespace sealift::packager
