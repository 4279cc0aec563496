// SPDX-License-Identifier: Apache-2.0
// Makes a key and its root; see keygen.hpp.
#include "packager/keys/keygen.hpp"

#include "packager/host/creation_time.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/trust/root.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::chrono::years kRootLifetime{10};

// A key without its root could not be used, and would be in the way of the next one. The first is the key.
void write_all_or_none(const fs::path& folder, const std::vector<std::string>& files,
                       const std::vector<std::string>& texts) {
  std::size_t written = 0;
  try {
    for (; written < files.size(); ++written)
      bundle::write_text(folder / files[written], texts[written], written == 0 ? 0600 : 0644);
  } catch (...) {
    std::error_code ignored;
    for (std::size_t i = 0; i < written; ++i) fs::remove(folder / files[i], ignored);
    throw;
  }
}

}  // namespace

bundle::Envelope root_of_one_key(const bundle::PrivateKey& key) {
  const bundle::PublicKey& half = key.public_key();
  const bool sm2 = half.algorithm() == bundle::Algorithm::Sm2;
  const bundle::Time now = creation_time();
  bundle::Role role{.keys = {half.id()}, .threshold = 1, .algorithms = {}};
  if (sm2) role.algorithms = {"sm2"};
  const bundle::Root root{.name = "simple",
                          .created = bundle::write_time(now),
                          .expires = bundle::write_time(now + kRootLifetime),
                          .profile = sm2 ? bundle::Profile::Gm : bundle::Profile::Standard,
                          .keys = {{half.id(), {.algorithm = name_of(half.algorithm()), .spki = half.spki()}}},
                          .roles = {{"root", role}, {"release", role}}};
  bundle::Envelope envelope{
      .payload_type = std::string(bundle::kRootPayloadType), .payload = bundle::write_root(root), .signatures = {}};
  add_signature(envelope, key);
  return envelope;
}

bundle::Digest keygen(const KeygenOptions& options) {
  const fs::path& folder = options.folder;
  const bool with_root = options.name.empty();
  const std::string name = with_root ? "release" : options.name;
  if (!bundle::is_plain_name(name))
    throw Error(ErrorCode::Usage, {.what = "a key's name is not plain",
                                   .expected = "a letter or digit, then letters, digits, '.', '_' or '-'",
                                   .got = name});
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) bundle::throw_errno("the folder for the key cannot be made", folder, error.value());
  std::vector<std::string> files = {name + ".key", name + ".pub"};
  if (with_root) files.insert(files.end(), {"root.1.json", "root.fingerprint"});
  for (const std::string& file : files)
    if (fs::exists(fs::symlink_status(folder / file, error)))
      throw Error(ErrorCode::Conflict, {.what = "there is a key here already; keys are never overwritten",
                                        .where = (folder / file).string(),
                                        .next = "use it, or name another folder"});
  const bundle::PrivateKey key = bundle::PrivateKey::generate(options.algorithm);
  const bundle::Envelope root = root_of_one_key(key);
  std::vector<std::string> texts = {key.pem(options.passphrase), key.public_key().pem()};
  if (with_root) texts.insert(texts.end(), {write_envelope(root), bundle::fingerprint_text(root.digest()) + "\n"});
  write_all_or_none(folder, files, texts);
  return with_root ? root.digest() : key.public_key().id();
}

}  // namespace sealift::packager
