// SPDX-License-Identifier: Apache-2.0
// The mirror of verified_bundle: entries in, a signed bundle folder out. The payload it writes is an OCI image archive,
// so stock tar lists it and registry tools accept it. Same entries, roots, Ed25519 keys and date: same bytes.
// Format: OCI image-spec 1.1, "Image Layout" and "Guidelines for Artifact Usage".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/trust/envelope.hpp"
#include "sealift/bundle/trust/private_key.hpp"

namespace sealift::bundle {

// What an entry becomes in a payload: its sizes, its content, and the digests of its chunks.
struct StoredForm {
  Entry entry;
  std::vector<Digest> chunks;
};

// What BundleWriter::add would store of `source` in a payload of this chunk size and digest, and nothing is written.
// Throws as add does.
StoredForm stored_form(Entry draft, ByteSource& source, const Payload& payload);

// Members throw Io, or Space when the disk is full.
class BundleWriter {
 public:
  // `draft` is the manifest but for payload and entries; of its payload, chunk_size and digest are used. `folder`
  // exists and is empty. Volumes have at most `volume_size` bytes; 0: one volume.
  BundleWriter(std::filesystem::path folder, Manifest draft, std::uint64_t volume_size);

  // Stores the bytes of `source`; throws Digest unless they have the size and SHA-256 that `draft` says, and then adds
  // nothing, so that the entry can be added again from a good source. Entries are added sorted by path. Equal bytes are
  // stored once.
  void add(Entry draft, ByteSource& source);
  // The same for an entry that is stored as it is, where the digests of its chunks are known from bytes that had its
  // SHA-256: one pass over the bytes instead of two. They are compared in finish(), which throws Digest.
  void add(Entry draft, ByteSource& source, std::vector<Digest> known);

  // Lists an entry of a delta without its bytes, in the same order as the others.
  void add_absent(Entry draft);

  // Closes the payload and signs with each key; `roots` is the chain that travels along, oldest first. Returns the
  // manifest that was sealed. Called once, last.
  Manifest finish(std::vector<Envelope> roots, std::span<const PrivateKey> keys);

  // After finish(): the digests of the chunks of an entry of its manifest; none of an absent one.
  std::vector<Digest> chunks(const Entry& entry) const;

 private:
  void store(Entry entry, ByteSource& source, bool hashed);
  std::uint64_t append_blob(const Entry& entry, ByteSource& source, bool hashed);
  void copy_checked(const Entry& entry, ByteSource& source, bool hashed);
  void compare_known() const;
  void add_compressed(Entry entry, ByteSource& source);
  void append_index();
  void append_text(std::string_view text);
  void append_member(const std::string& path, const std::string& text);

  std::filesystem::path folder_;
  Manifest manifest_;
  PayloadWriter payload_;
  std::map<Digest, std::uint64_t> blobs_;          // stored digest -> offset of its bytes
  std::map<SafePath, std::vector<Digest>> known_;  // of entries whose SHA-256 was not computed
  std::optional<ChunkLayout> layout_;              // once it is finished
};

}  // namespace sealift::bundle
