// SPDX-License-Identifier: Apache-2.0
// The mirror of verified_bundle: entries in, a signed bundle folder out. The payload it writes is an OCI image archive,
// so stock tar lists it and registry tools accept it. Same entries, roots, Ed25519 keys and date: same bytes.
// Format: OCI image-spec 1.1, "Image Layout" and "Guidelines for Artifact Usage".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/trust/envelope.hpp"
#include "sealift/bundle/trust/private_key.hpp"

namespace sealift::bundle {

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

  // Lists an entry of a delta without its bytes, in the same order as the others.
  void add_absent(Entry draft);

  // Closes the payload and signs with each key; `roots` is the chain that travels along, oldest first. Returns the
  // manifest that was sealed. Called once, last.
  Manifest finish(std::vector<Envelope> roots, std::span<const PrivateKey> keys);

 private:
  void store(Entry entry, ByteSource& source);
  std::uint64_t append_blob(const Entry& entry, ByteSource& source);
  void copy_checked(const Entry& entry, ByteSource& source);
  void add_compressed(Entry entry, ByteSource& source);
  void append_index();
  void append_text(std::string_view text);
  void append_member(const std::string& path, const std::string& text);

  std::filesystem::path folder_;
  Manifest manifest_;
  PayloadWriter payload_;
  std::map<Digest, std::uint64_t> blobs_;  // stored digest -> offset of its bytes
};

}  // namespace sealift::bundle
