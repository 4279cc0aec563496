// SPDX-License-Identifier: Apache-2.0
// The only gate: open -> verify -> VerifiedBundle. Installer and repository get payload bytes from here or not at all.
// Order: seal, read once -> roots from the pinned one on -> signatures of each role -> manifest -> withdrawn, rollback,
// time -> chunk list -> volumes -> every chunk as it is read. Each step uses only bytes that an earlier one vouched
// for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "sealift/bundle/trust/acceptance.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/open_bundle.hpp"
#include "sealift/bundle/payload/payload_reader.hpp"
#include "sealift/bundle/archive/zstd.hpp"

namespace sealift::bundle {

class VerifiedBundle;
VerifiedBundle verify(const OpenBundle& opened, const Trust& trust, Time now);

class VerifiedBundle {
 public:
  const Manifest& manifest() const { return manifest_; }
  // SHA-256 of the manifest's bytes: what names this bundle in records.
  const Digest& identity() const { return identity_; }
  // The keys whose signatures counted: those of the release role, then those of the site role.
  const std::vector<Digest>& signers() const { return signers_; }
  // The newest root that was accepted on the way, by which everything was judged.
  const Root& root() const { return root_; }
  RootName root_name() const { return {.version = root_.version, .fingerprint = sha256(as_bytes(trust_.root))}; }
  // What an operator should know, though it is no reason to refuse.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // What the site believes once it has taken in this bundle.
  const TrustState& trust() const { return trust_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Says that `entry` will be read once, before the first of those is: see PayloadReader::expect.
  void expect(const Entry& entry) const { payload_->expect(entry.offset, entry.stored_size); }
  // The entry's stored bytes, each chunk checked as it is read. Throws Missing for what a delta does not carry.
  std::unique_ptr<ByteSource> stored(const Entry& entry) const { return range_of(entry, 3 * kDefaultChunkSize); }
  // The same for who reads forward and has many open, such as a server: one chunk of memory each.
  std::unique_ptr<ByteSource> stored_in_order(const Entry& entry) const { return range_of(entry, 0); }

  // The entry's own bytes in order, decoded; throws before returning when they are not the signed ones, so what the
  // sink wrote must not be used before this returns.
  void stream(const Entry& entry, const ByteSink& sink) const {
    const std::unique_ptr<ByteSource> source = stored(entry);
    Hasher hasher;
    const auto hashed = [&](ByteView piece) {
      hasher.update(piece);
      sink(piece);
    };
    if (entry.encoding == Encoding::Identity) {
      for_each_piece(*source, hashed);
    } else {
      ZstdDecoder decoder(entry.size, source->name());
      for_each_piece(*source, [&](ByteView piece) { decoder.feed(piece, hashed); });
      decoder.finish();
    }
    if (const Digest digest = hasher.finish(); digest != entry.sha256)
      throw Error(ErrorCode::Digest, {.what = "an entry differs from what was signed",
                                      .where = source->name(),
                                      .expected = "sha256 " + entry.sha256.hex(),
                                      .got = "sha256 " + digest.hex()});
  }

  const PayloadReader& payload() const { return *payload_; }

 private:
  friend VerifiedBundle verify(const OpenBundle& opened, const Trust& trust, Time now);
  VerifiedBundle() = default;

  std::unique_ptr<ByteSource> range_of(const Entry& entry, std::uint64_t memory) const {
    if (entry.absent)
      throw Error(ErrorCode::Missing, {.what = "the bundle is a delta and does not carry this entry",
                                       .where = manifest_.stem() + ":" + entry.path.text(),
                                       .expected = "sha256 " + entry.sha256.hex() + " in the target's store",
                                       .next = "use a bundle that carries it"});
    return std::make_unique<PayloadRange>(payload_, entry.offset, entry.stored_size,
                                          manifest_.stem() + ":" + entry.path.text(), memory);
  }

  static void for_each_piece(ByteSource& source, const ByteSink& sink) {
    for (std::uint64_t offset = 0; offset < source.size();) {
      const ByteView piece = source.view(offset, static_cast<std::size_t>(kMaxChunkSize));
      sink(piece);
      offset += piece.size();
    }
  }

  Manifest manifest_;
  Digest identity_;
  std::vector<Digest> signers_;
  Root root_;
  std::vector<std::string> warnings_;
  TrustState trust_;
  std::filesystem::path folder_;
  std::shared_ptr<const PayloadReader> payload_;
};

namespace detail {

// The keys of the release role, and of the site role if the root has one, whose signatures of the manifest count.
inline std::vector<Digest> check_manifest_signatures(const Root& root, const Envelope& manifest,
                                                     const std::string& where) {
  const auto verdicts = check_signatures(manifest, where, crypto_properties(root));
  std::vector<Digest> signers = require_role(root, std::string(kReleaseRole), verdicts, where);
  if (root.roles.contains(std::string(kSiteRole)))
    for (const Digest& id : require_role(root, std::string(kSiteRole), verdicts, where))
      if (std::find(signers.begin(), signers.end(), id) == signers.end()) signers.push_back(id);
  if (manifest.payload_type != kBundlePayloadType)
    throw Error(ErrorCode::CannotCheck, {.what = "the seal is for something else",
                                         .where = where,
                                         .expected = std::string(kBundlePayloadType),
                                         .got = SafePath::printable(manifest.payload_type)});
  return signers;
}

}  // namespace detail

// Roots, signatures, manifest, versions, chunk list, volume sizes and companions hold, or it throws. Payload bytes are
// checked as they are read. `now` is this machine's clock, which no verdict on integrity depends on.
inline VerifiedBundle verify(const OpenBundle& opened, const Trust& trust, Time now) {
  const std::string where = opened.seal_path.string();
  VerifiedBundle bundle;
  bundle.trust_ = accept_roots(trust.state, read_root_chain(opened.seal.roots, where), where);
  bundle.root_ = parse_root(bundle.trust_.root, where);
  bundle.identity_ = opened.seal.manifest.digest();
  detail::refuse_revoked(bundle.root_, bundle.identity_, where);
  bundle.signers_ = detail::check_manifest_signatures(bundle.root_, opened.seal.manifest, where);
  // Beyond this point the manifest's bytes are the signers'.
  bundle.manifest_ = parse_manifest(opened.seal.manifest.payload, opened.seal_path.filename().string());
  detail::refuse_rollback({.state = bundle.trust_, .allow_downgrade = trust.allow_downgrade}, bundle.root_,
                          bundle.manifest_, bundle.identity_, where);
  bundle.trust_ = remember(std::move(bundle.trust_), bundle.manifest_, bundle.identity_);
  bundle.warnings_ = detail::judge_time(bundle.trust_, bundle.root_, now, where);
  if (bundle.root_.profile == Profile::Fips && crypto_properties(bundle.root_) == nullptr)
    bundle.warnings_.push_back(
        "the root asks for FIPS, and this program has no FIPS provider: signatures were checked by its own crypto "
        "library; to check with the host's validated one, follow FORMAT.md, \"By hand\"");
  bundle.folder_ = opened.folder;
  const Manifest& manifest = bundle.manifest_;
  if (opened.seal_path.filename() != manifest.stem() + std::string(kSealSuffix))
    throw Error(ErrorCode::Conflict, {.what = "the seal is not named as the bundle it seals",
                                      .where = where,
                                      .expected = manifest.stem() + std::string(kSealSuffix)});
  detail::refuse_extra_files(opened.folder, manifest);
  std::vector<Digest> chunks =
      detail::read_chunk_list(opened.folder / (manifest.stem() + std::string(kChunksSuffix)), manifest.payload);
  VolumeSources sources{.folders = {opened.folder}, .ask = opened.ask, .read_once = opened.read_once};
  sources.folders.insert(sources.folders.end(), opened.more_folders.begin(), opened.more_folders.end());
  bundle.payload_ = std::make_shared<PayloadReader>(std::move(sources), manifest.payload, std::move(chunks));
  detail::check_companions(opened.folder, manifest);
  return bundle;
}

// Reads every chunk with `threads` threads and returns the failures in payload order; `progress` gets bytes as they
// are done, from any thread. Memory: one chunk a thread.
inline std::vector<Error> check_every_chunk(const VerifiedBundle& bundle, unsigned threads,
                                            const std::function<void(std::uint64_t)>& progress = {}) {
  const PayloadReader& payload = bundle.payload();
  const std::uint64_t count = payload.payload().chunk_count();
  std::atomic<std::uint64_t> next{0};
  std::mutex guard;
  std::map<std::uint64_t, Error> failures;
  const auto work = [&] {
    ChunkBuffer memory;
    for (std::uint64_t index; (index = next.fetch_add(1)) < count;) {
      try {
        payload.will_need(index + threads);  // the medium reads on while this one is hashed
        memory = payload.chunk(index, std::move(memory));
        if (progress) progress(memory.size());
      } catch (const Error& error) {
        const std::lock_guard lock(guard);
        failures.emplace(index, error);
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < std::max(1u, threads); ++i) workers.emplace_back(work);
    work();
  }
  std::vector<Error> in_order;
  for (auto& [index, error] : failures) in_order.push_back(error);
  return in_order;
}

}  // namespace sealift::bundle
