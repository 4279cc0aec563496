// SPDX-License-Identifier: Apache-2.0
// Judges keys, then signs, exports or imports; see new_signature.hpp.
#include "packager/keys/new_signature.hpp"

#include <fcntl.h>

#include "bundle/host/named_lock.hpp"
#include "packager/keys/key_file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxSignature = 16384;

bundle::Bytes read_signature(const fs::path& file) {
  const std::string text = bundle::read_text(file, kMaxSignature);
  const bundle::ByteView view = bundle::as_bytes(text);
  return {view.begin(), view.end()};
}

}  // namespace

void check_ways(const NewSignature& how, bool otherwise) {
  const int ways = int(!how.keys.empty() || otherwise) + int(!how.export_to.empty()) + int(!how.import_from.empty());
  const bool half_given = how.public_key.empty() ? !how.import_from.empty() : !how.keys.empty();
  if (ways == 1 && !half_given) return;
  throw Error(ErrorCode::Usage,
              {.what = "exactly one thing must be asked for",
               .expected = "--key KEY (for a bundle also --root ROOT), --export OUT, or --import SIGNATURE "
                           "--public-key PUB"});
}

void add_new_signatures(const NewSignature& how, bundle::Envelope& envelope, const RolesOfKey& roles_of,
                        bundle::Progress& progress) {
  const auto judge = [&](const bundle::PublicKey& key, const char* does) {
    progress.note("key " + bundle::fingerprint_text(key.id()) + " " + does + " as " + roles_of(key));
  };
  std::vector<bundle::PrivateKey> keys;
  for (const fs::path& file : how.keys) {
    keys.push_back(read_private_key(file, how.passphrase));
    judge(keys.back().public_key(), "signs");
  }
  for (const bundle::PrivateKey& key : keys) add_signature(envelope, key);
  if (how.public_key.empty() && how.export_to.empty()) return;
  std::optional<bundle::PublicKey> half;
  if (!how.public_key.empty()) half = read_public_key(how.public_key);
  if (half) judge(*half, how.export_to.empty() ? "has signed" : "is to sign");
  if (!how.export_to.empty()) return bundle::write_text(how.export_to, bundle::as_text(message_of(envelope)));
  add_signature(envelope, *half, read_signature(how.import_from));
}

bundle::Descriptor lock_signed(const fs::path& file) {
  for (;;) {
    bundle::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!opened) bundle::throw_errno("a file cannot be opened", file);
    switch (bundle::try_lock(opened, file)) {
      case bundle::Locking::Gone:
        continue;
      case bundle::Locking::Held:
        throw Error(ErrorCode::Conflict, {.what = "another process is signing this file, and would lose one signature",
                                          .where = file.string(),
                                          .next = "wait for it, then run the same command again"});
      case bundle::Locking::Got:
      case bundle::Locking::Without:
        return opened;
    }
  }
}

}  // namespace sealift::packager
