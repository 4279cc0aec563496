// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/verified_bundle.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "bundle/archive/zstd.hpp"
#include "bundle/payload/payload_range.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"
#include "sealift/bundle/trust/acceptance.hpp"

namespace sealift::bundle {
namespace {

void for_each_piece(ByteSource& source, const ByteSink& sink) {
  for (std::uint64_t offset = 0; offset < source.size();) {
    const ByteView piece = source.view(offset, static_cast<std::size_t>(kMaxChunkSize));
    sink(piece);
    offset += piece.size();
  }
}

// A wheel is opened at its end; everything else is a stream.
bool is_read_forwards(const Entry& entry) {
  return entry.kind != EntryKind::Wheel;
}

// The keys of the release role, and of the site role if the root has one, whose signatures of the manifest count.
std::vector<Digest> check_manifest_signatures(const Root& root, const Envelope& manifest, const std::string& where) {
  const std::string release(kReleaseRole), site(kSiteRole);
  std::vector<Digest> signers = check_role(root, release, manifest, where);
  if (root.roles.contains(site))
    for (const Digest& id : check_role(root, site, manifest, where))
      if (std::find(signers.begin(), signers.end(), id) == signers.end()) signers.push_back(id);
  check_other_signatures(root, {release, site}, manifest, where);
  require_payload_type(manifest, kBundlePayloadType, ErrorCode::CannotCheck, "the seal is for something else", where);
  return signers;
}

}  // namespace

RootName VerifiedBundle::root_name() const {
  return {.version = root_.version, .fingerprint = sha256(as_bytes(trust_.root))};
}

void VerifiedBundle::expect(const Entry& entry) const {
  payload_->expect(entry.offset, entry.stored_size);
  if (!is_read_forwards(entry) && entry.stored_size != 0) payload_->expect(entry.offset + entry.stored_size - 1, 1);
}

std::unique_ptr<ByteSource> VerifiedBundle::stored(const Entry& entry) const {
  return range_of(entry, kRangeMemory, {.size = entry.stored_size, .forwards = is_read_forwards(entry)});
}

std::unique_ptr<ByteSource> VerifiedBundle::stored_in_order(const Entry& entry) const {
  return range_of(entry, 0, {.size = entry.stored_size, .forwards = is_read_forwards(entry)});
}

void VerifiedBundle::expect_part(const Entry& entry, std::uint64_t offset, std::uint64_t size) const {
  payload_->expect(entry.offset + offset, size);
}

std::unique_ptr<ByteSource> VerifiedBundle::stored_part(const Entry& entry, std::uint64_t offset,
                                                        std::uint64_t size) const {
  return range_of(entry, 0, {.begin = offset, .size = size, .forwards = true});
}

std::unique_ptr<ByteSource> VerifiedBundle::range_of(const Entry& entry, std::uint64_t memory,
                                                     const PayloadPart& part) const {
  if (entry.absent)
    throw Error(ErrorCode::Missing, {.what = "the bundle is a delta and does not carry this entry",
                                     .where = manifest_.stem() + ":" + entry.path.text(),
                                     .expected = "content " + entry.content.hex() + " in the target's store",
                                     .next = "use a bundle that carries it"});
  return std::make_unique<PayloadRange>(payload_, entry.offset, entry.stored_size,
                                        manifest_.stem() + ":" + entry.path.text(), memory, part);
}

void VerifiedBundle::stream(const Entry& entry, const ByteSink& sink) const {
  if (!entry.absent && entry.encoding == Encoding::Patch)
    throw Error(ErrorCode::CannotCheck,
                {.what = "a wheel is carried as a patch, so its published bytes are not in the bundle",
                 .where = manifest_.stem() + ":" + entry.path.text(),
                 .expected = "a wheel that is carried whole",
                 .next = "install the bundle on a prefix that has what it builds on, or use a bundle without patches"});
  const std::unique_ptr<ByteSource> source = stored_in_order(entry);
  if (entry.encoding == Encoding::Identity) return for_each_piece(*source, sink);
  ZstdDecoder decoder(entry.size, source->name());
  for_each_piece(*source, [&](ByteView piece) { decoder.feed(piece, sink); });
  decoder.finish();
}

void VerifiedBundle::check_published(const Entry& entry, const std::function<void(std::uint64_t)>& progress) const {
  Hasher hasher;
  stream(entry, [&](ByteView piece) {
    hasher.update(piece);
    if (progress) progress(piece.size());
  });
  if (const Digest digest = hasher.finish(); digest != entry.sha256)
    throw Error(ErrorCode::Digest, {.what = "an entry is not what the manifest says was published",
                                    .where = manifest_.stem() + ":" + entry.path.text(),
                                    .expected = "sha256 " + entry.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "do not use this bundle; tell who signed it"});
}

VerifiedBundle verify(const OpenBundle& opened, const Trust& trust, Time now) {
  const std::string where = opened.seal_path.string();
  VerifiedBundle bundle;
  bundle.trust_ = follow_roots(trust.state, opened.seal.roots, where);
  bundle.root_ = parse_root(bundle.trust_.root, where);
  bundle.identity_ = opened.seal.manifest.digest();
  refuse_revoked(bundle.root_, bundle.identity_, where);
  bundle.signers_ = check_manifest_signatures(bundle.root_, opened.seal.manifest, where);
  // Beyond this point the manifest's bytes are the signers'.
  bundle.manifest_ = parse_manifest(opened.seal.manifest.payload, opened.seal_path.filename().string());
  refuse_rollback({.state = bundle.trust_, .allow_downgrade = trust.allow_downgrade}, bundle.root_, bundle.manifest_,
                  bundle.identity_, where);
  if (trust.sandboxed_builds_only) refuse_unsandboxed_builds(bundle.manifest_, where);
  bundle.trust_ = remember(std::move(bundle.trust_), bundle.manifest_, bundle.identity_);
  bundle.warnings_ = judge_time(bundle.trust_, bundle.root_, now, where);
  if (bundle.root_.profile == Profile::Fips && crypto_properties(bundle.root_) == nullptr)
    bundle.warnings_.push_back(
        "the root asks for FIPS, and this program has no FIPS provider: signatures were checked by its own crypto "
        "library; to check with the host's validated one, follow FORMAT.md, \"By hand\"");
  bundle.folder_ = opened.folder;
  const Manifest& manifest = bundle.manifest_;
  if (const std::vector<std::string> names = wheels_built(manifest, WheelBuild::Unsandboxed); !names.empty())
    bundle.warnings_.push_back(std::to_string(names.size()) +
                               " wheel(s) were built outside of a sandbox, by code that could reach all that the "
                               "packer can: " +
                               few_of(names));
  if (opened.seal_path.filename() != manifest.stem() + std::string(kSealSuffix))
    throw Error(ErrorCode::Conflict, {.what = "the seal is not named as the bundle it seals",
                                      .where = where,
                                      .expected = manifest.stem() + std::string(kSealSuffix),
                                      .next = "give it this name back"});
  refuse_extra_files(opened.folder, manifest);
  std::vector<Digest> chunks =
      read_chunk_list(opened.folder / (manifest.stem() + std::string(kChunksSuffix)), manifest.payload);
  name_contents(bundle.manifest_, chunks);
  VolumeSources sources{
      .folders = {opened.folder}, .ask = opened.ask, .read_once = opened.read_once, .mending = opened.mending};
  sources.folders.insert(sources.folders.end(), opened.more_folders.begin(), opened.more_folders.end());
  bundle.payload_ = std::make_shared<PayloadReader>(std::move(sources), manifest.payload, std::move(chunks));
  check_companions(opened.folder, manifest);
  return bundle;
}

std::vector<Error> check_every_chunk(const VerifiedBundle& bundle, unsigned threads,
                                     const std::function<void(std::uint64_t)>& progress) {
  constexpr std::uint64_t kMemory = std::uint64_t{160} << 20;
  const PayloadReader& payload = bundle.payload();
  threads = std::min(threads, static_cast<unsigned>(kMemory / payload.payload().chunk_size));
  std::mutex guard;
  std::vector<ChunkBuffer> idle;  // at most one a thread
  std::map<std::uint64_t, Error> failures;
  const auto take_memory = [&] {
    const std::lock_guard lock(guard);
    if (idle.empty()) return ChunkBuffer();
    ChunkBuffer memory = std::move(idle.back());
    idle.pop_back();
    return memory;
  };
  parallel_for(threads, static_cast<std::size_t>(payload.payload().chunk_count()), [&](std::size_t index) {
    try {
      payload.will_need(index + threads);  // the medium reads on while this one is hashed
      ChunkBuffer memory = payload.chunk(index, take_memory());
      if (progress) progress(memory.size());
      const std::lock_guard lock(guard);
      idle.push_back(std::move(memory));
    } catch (const Error& error) {
      const std::lock_guard lock(guard);
      failures.emplace(index, error);
    }
  });
  std::vector<Error> in_order;
  for (const auto& [index, error] : failures) in_order.push_back(error);
  return in_order;
}

}  // namespace sealift::bundle
