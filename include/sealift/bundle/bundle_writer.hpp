// SPDX-License-Identifier: Apache-2.0
// The mirror of verified_bundle: entries in, a signed bundle folder out. The payload it writes is an OCI image archive,
// so stock tar lists it and registry tools accept it. Same entries, roots, Ed25519 keys and date: same bytes.
// Format: OCI image-spec 1.1, "Image Layout" and "Guidelines for Artifact Usage".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

// What BundleWriter::add would store of `source` in a payload of this chunk size and digest; nothing is written, but
// `sink`, where there is one, gets the bytes. Throws as add does.
StoredForm stored_form(Entry draft, ByteSource& source, const Payload& payload, const ByteSink& sink = {});

// Names how Encoding::Zstd makes bytes of others, e.g. "zstd3-1.5.4": another name may mean other bytes.
std::string compression_name();

// Members throw Io, or Space when the disk is full.
class BundleWriter {
 public:
  // `draft` is the manifest but for payload and entries; of its payload, chunk_size and digest are used. `folder`
  // exists and is empty. Volumes have at most `volume_size` bytes; 0: one volume.
  BundleWriter(std::filesystem::path folder, Manifest draft, std::uint64_t volume_size);

  // Stores the bytes of `source`; throws Digest unless they have the size and SHA-256 that `draft` says, and then adds
  // nothing, so that the entry can be added again from a good source. Entries are added sorted by path. Equal bytes are
  // stored once. Of a Patch, `source` is what is stored, with the size and SHA-256 of `stored_size` and
  // `stored_sha256`.
  void add(Entry draft, ByteSource& source);
  // Stores `file` as it is, of which the digests of its chunks are known from bytes that had the SHA-256: one pass over
  // the bytes instead of two, by several threads while more is added. Of a compressed entry the file is its stored
  // form, of which `draft` says size and SHA-256. Throws Digest for another size; the digests are compared later.
  void add(Entry draft, const std::filesystem::path& file, std::vector<Digest> known,
           PayloadWriter::OnRead on_read = {});
  // Waits for the files of the second add: the paths whose chunks are not the known ones. finish() throws Digest if
  // there are any.
  std::vector<SafePath> other_than_known();
  // Gives such an entry the bytes of `source`, which are compared by SHA-256: throws Digest.
  void add_again(const SafePath& path, ByteSource& source);

  // Has finish() write recovery data of as many recovery chunks as are `percent` (1 to 100) of the payload's pieces, in
  // files that are cut as volumes are. 0: none. `progress` gets the bytes of the payload that are read for it.
  void ask_recovery(unsigned percent, std::function<void(std::uint64_t)> progress = {});

  // Lists an entry of a delta without its bytes, in the same order as the others.
  void add_absent(Entry draft);

  // Closes the payload and signs with each key; `roots` is the chain that travels along, oldest first. Returns the
  // manifest that was sealed. Called once, last.
  Manifest finish(std::vector<Envelope> roots, std::span<const PrivateKey> keys);

  // After finish(): the digests of the chunks of an entry of its manifest; none of an absent one.
  std::vector<Digest> chunks(const Entry& entry) const;

 private:
  using Append = std::function<void()>;
  struct Known {
    std::size_t first;  // of its chunks
    std::vector<Digest> chunks;
  };

  void store(Entry entry, const Append& append);
  void copy_checked(const Entry& entry, ByteSource& source, bool hashed);
  void compare_known();
  void add_compressed(Entry entry, ByteSource& source);
  void add_recovery();
  void append_index();
  void append_text(std::string_view text);
  void append_member(const std::string& path, const std::string& text);

  std::filesystem::path folder_;
  Manifest manifest_;
  std::uint64_t volume_size_;
  unsigned recovery_percent_ = 0;  // 0: none
  std::function<void(std::uint64_t)> recovery_progress_;
  PayloadWriter payload_;
  std::map<Digest, std::uint64_t> blobs_;  // stored digest -> offset of its bytes
  std::map<SafePath, Known> known_;        // entries whose SHA-256 was not computed
  std::optional<ChunkLayout> layout_;      // once it is finished
};

}  // namespace sealift::bundle
