// SPDX-License-Identifier: Apache-2.0
// The only gate: open -> verify -> VerifiedBundle. Installer and repository get payload bytes from here or not at all.
// Order: seal, read once -> roots from the pinned one on -> signatures of each role -> manifest -> withdrawn, rollback,
// time -> chunk list -> volumes -> every chunk as it is read. Each step uses only bytes that an earlier one vouched
// for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/open_bundle.hpp"
#include "sealift/bundle/payload/payload_reader.hpp"
#include "sealift/bundle/trust/acceptance.hpp"
#include "sealift/bundle/trust/root.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::bundle {

class VerifiedBundle;
struct PayloadPart;

// Checks roots, signatures, manifest, versions, chunk list, volume sizes and the programs beside the bundle, and throws
// unless all of them hold. Payload bytes are checked as they are read. `now` is this machine's clock; no verdict on
// integrity depends on it.
VerifiedBundle verify(const OpenBundle& opened, const Trust& trust, Time now);

class VerifiedBundle {
 public:
  const Manifest& manifest() const { return manifest_; }
  // SHA-256 of the manifest's bytes: identifies this bundle in records.
  const Digest& identity() const { return identity_; }
  // The keys whose signatures counted: those of the release role, then those of the site role.
  const std::vector<Digest>& signers() const { return signers_; }
  // The newest accepted root, by which everything was judged.
  const Root& root() const { return root_; }
  RootName root_name() const;
  // What an operator should know, though it is no reason to refuse.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The site's trust state once it has accepted this bundle.
  const TrustState& trust() const { return trust_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Announces that `entry` will be read once; called for all such entries before the first is read. See
  // PayloadReader::expect.
  void expect(const Entry& entry) const;
  // The entry's stored bytes, each chunk checked as it is read. Throws Missing for what a delta does not carry.
  std::unique_ptr<ByteSource> stored(const Entry& entry) const;
  // Both for `size` bytes at `offset` of the stored bytes alone: an entry of which several threads read a part each,
  // forwards. Offsets of what is read count from the entry's beginning.
  void expect_part(const Entry& entry, std::uint64_t offset, std::uint64_t size) const;
  std::unique_ptr<ByteSource> stored_part(const Entry& entry, std::uint64_t offset, std::uint64_t size) const;
  // The same for a reader that goes forward and is one of many, such as a server: keeps one chunk in memory.
  std::unique_ptr<ByteSource> stored_in_order(const Entry& entry) const;
  // The entry's own bytes in order, decoded. Their chunks vouch for them; what comes out of a zstd frame is held to the
  // frame's size and checksum, and this throws where they differ: what the sink wrote must not be used before it
  // returns. Throws CannotCheck for a wheel that is carried as a patch: its own bytes are not in the bundle.
  void stream(const Entry& entry, const ByteSink& sink) const;
  // Reads the entry; throws Digest unless its own bytes have the SHA-256 that the manifest promises, and under which
  // others published them. The chunks do not say that.
  void check_published(const Entry& entry, const std::function<void(std::uint64_t)>& progress = {}) const;

  const PayloadReader& payload() const { return *payload_; }

 private:
  friend VerifiedBundle verify(const OpenBundle& opened, const Trust& trust, Time now);
  VerifiedBundle() = default;

  std::unique_ptr<ByteSource> range_of(const Entry& entry, std::uint64_t memory, const PayloadPart& part) const;

  Manifest manifest_;
  Digest identity_;
  std::vector<Digest> signers_;
  Root root_;
  std::vector<std::string> warnings_;
  TrustState trust_;
  std::filesystem::path folder_;
  std::shared_ptr<const PayloadReader> payload_;
};

// Reads every chunk with `threads` threads and returns the failures in payload order. `progress` gets the number of
// bytes of each good chunk, from any thread. Memory: one chunk a thread, and no more threads than chunks in 160 MiB.
std::vector<Error> check_every_chunk(const VerifiedBundle& bundle, unsigned threads,
                                     const std::function<void(std::uint64_t)>& progress = {});

}  // namespace sealift::bundle
