// SPDX-License-Identifier: Apache-2.0
// Verifies first, by a root that the caller names: the signer of a manifest must know that it was good, and the
// keys and roots inside a bundle prove nothing by themselves.
#include "packager/pack/recut.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "packager/files/new_bundle_folder.hpp"
#include "packager/keys/signing.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/payload/recovery_writer.hpp"
#include "sealift/bundle/trust/seal.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

bundle::Payload cut(const bundle::VerifiedBundle& source, const fs::path& folder, std::uint64_t volume_size,
                    bundle::Progress& progress) {
  const bundle::Manifest& manifest = source.manifest();
  const bundle::PayloadReader& reader = source.payload();
  progress.begin("cutting " + manifest.stem(), manifest.payload.size);
  bundle::PayloadWriter writer(folder, manifest.stem(), manifest.payload.chunk_size, volume_size,
                               manifest.payload.digest);
  bundle::ChunkBuffer memory;
  const std::vector<std::uint64_t>& cuts = manifest.payload.cuts;
  for (std::uint64_t index = 0; index < reader.layout().count(); ++index) {
    reader.will_need(index + 1);
    memory = reader.chunk(index, std::move(memory));
    if (std::binary_search(cuts.begin(), cuts.end(), reader.layout().begin_of(index))) writer.begin_chunk();
    writer.append(memory.view());
    progress.add(memory.size());
  }
  bundle::Payload payload = writer.finish();
  progress.end();
  return payload;
}

// The same recovery chunks in other files: they are made again, since the medium's own may have been left out.
bundle::Recovery cut_recovery(const bundle::VerifiedBundle& source, const bundle::Payload& payload,
                              const fs::path& folder, std::uint64_t volume_size) {
  const bundle::PayloadReader reader(folder, payload, source.payload().digests());
  const bundle::Recovery& before = *source.manifest().payload.recovery;
  return bundle::write_recovery(reader,
                                {.groups = before.groups, .parity = before.parity, .list_digest = {}, .files = {}},
                                folder, source.manifest().stem(), volume_size);
}

// Copies the installer and the audit script if they are still beside the bundle; `verify` has checked the originals,
// and the copies are checked here.
void copy_companions(const bundle::VerifiedBundle& source, const fs::path& folder) {
  for (const bundle::Companion& companion : source.manifest().companions) {
    const fs::path from = source.folder() / companion.name, to = folder / companion.name;
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(from, ignored))) continue;
    copy_program(from, to);
  }
  bundle::check_companions(folder, source.manifest());
}

}  // namespace

RecutResult recut(const RecutOptions& options, bundle::Progress& progress) {
  const bundle::OpenBundle opened = bundle::open(options.bundle);
  const bundle::VerifiedBundle source =
      bundle::verify(opened, {.state = {.pinned = options.fingerprint}}, bundle::system_time());
  for (const std::string& warning : source.warnings()) progress.warn(warning);
  const Signing signing = read_signing(opened.seal.roots, options.keys, options.passphrase);
  RecutResult result{.folder = fs::absolute(options.out).lexically_normal() / source.manifest().stem(),
                     .manifest = source.manifest(),
                     .roles = {}};
  refuse_existing(result.folder);
  fs::create_directories(result.folder.parent_path());
  std::uint64_t needed = result.manifest.payload.size;
  for (const bundle::Companion& companion : result.manifest.companions) needed += companion.size;
  check_space(result.folder.parent_path(), needed);

  PartialFolder partial(result.folder);
  bundle::Payload payload = cut(source, partial.path(), options.volume_size, progress);
  result.manifest.payload.volumes = payload.volumes;
  const std::optional<bundle::Recovery> recovery = std::exchange(result.manifest.payload.recovery, std::nullopt);
  if (payload != result.manifest.payload)  // every chunk was checked, so this would be a bug
    throw Error(ErrorCode::Digest, {.what = "the payload changed while it was cut", .where = partial.path().string()});
  if (recovery) result.manifest.payload.recovery = cut_recovery(source, payload, partial.path(), options.volume_size);
  copy_companions(source, partial.path());
  bundle::Seal seal{.roots = signing.roots};
  seal.manifest.payload = write_manifest(result.manifest);
  bundle::parse_manifest(seal.manifest.payload, result.manifest.stem());
  for (const bundle::PrivateKey& key : signing.keys) add_signature(seal.manifest, key);
  bundle::write_text(partial.path() / (result.manifest.stem() + std::string(bundle::kSealSuffix)), write_seal(seal));
  partial.become(result.folder);
  result.roles = bundle_status(seal);
  return result;
}

}  // namespace sealift::packager
