// SPDX-License-Identifier: Apache-2.0
// One file for each statement: its bytes, and behind them their SHA-256; see known_chunks.hpp.
#include "packager/files/known_chunks.hpp"

#include <cstring>
#include <span>

#include "sealift/bundle/bundle_writer.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;

namespace {

std::optional<std::string> read_statement(const fs::path& file, const Cache& cache) {
  std::optional<std::string> text = cache.read_note(file, (bundle::kMaxChunks + 1) * Digest::kSize);
  if (!text || text->size() < Digest::kSize) return std::nullopt;
  const bundle::ByteView body = bundle::as_bytes(*text).first(text->size() - Digest::kSize);
  if (bundle::sha256(body) != Digest::from_bytes(bundle::as_bytes(*text).subspan(body.size()))) return std::nullopt;
  text->resize(body.size());
  return text;
}

bool is_its_own_chunk(std::uint64_t size, const bundle::Payload& payload) {
  return size <= payload.chunk_size && payload.digest == bundle::DigestAlgorithm::Sha256;
}

}  // namespace

KnownChunks::KnownChunks(const Cache& cache)
    : cache_(cache), folder_(cache.root() / "chunks"), learnt_{.digest = cache.payload_digest()} {}

void KnownChunks::state(const fs::path& file, bundle::ByteView body) const {
  cache_.note(file, std::string(bundle::as_text(body)).append(bundle::as_text(bundle::sha256(body).bytes)));
}

fs::path KnownChunks::path(const Digest& sha256, const bundle::Payload& payload) const {
  return folder_ / (sha256.hex() + "-" + name_of(payload.digest) + "-" + std::to_string(payload.chunk_size));
}

fs::path KnownChunks::compressed_path(const Digest& sha256) const {
  return folder_ / (sha256.hex() + "-" + bundle::compression_name());
}

std::optional<KnownChunks::Chunks> KnownChunks::read(const Digest& sha256, std::uint64_t size,
                                                     const bundle::Payload& payload) const {
  if (is_its_own_chunk(size, payload)) return Chunks(size == 0 ? 0 : 1, sha256);
  const std::optional<std::string> text = read_statement(path(sha256, payload), cache_);
  if (!text || text->size() % Digest::kSize != 0) return std::nullopt;
  Chunks chunks(text->size() / Digest::kSize);
  if (!chunks.empty()) std::memcpy(chunks.data(), text->data(), text->size());
  return chunks;
}

void KnownChunks::write(const Digest& sha256, std::uint64_t size, const bundle::Payload& payload,
                        const Chunks& chunks) const {
  if (!is_its_own_chunk(size, payload)) state(path(sha256, payload), std::as_bytes(std::span(chunks)));
}

Digest KnownChunks::learn(const fs::path& file, const std::function<void(std::uint64_t)>& progress) const {
  bundle::FileSource source(file);
  bundle::Hasher hasher;
  bundle::ChunkDigester digester(learnt_.chunk_size, learnt_.digest);
  for (std::uint64_t offset = 0; offset < source.size();) {
    bundle::stop_if_interrupted();
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    hasher.update(piece);
    if (!is_its_own_chunk(source.size(), learnt_)) digester.update(piece);
    offset += piece.size();
    if (progress) progress(piece.size());
  }
  const Digest sha256 = hasher.finish();
  write(sha256, source.size(), learnt_, digester.finish());
  return sha256;
}

Digest KnownChunks::learn(bundle::ByteView bytes) const {
  const Digest sha256 = bundle::sha256(bytes);
  bundle::ChunkDigester digester(learnt_.chunk_size, learnt_.digest);
  if (!is_its_own_chunk(bytes.size(), learnt_)) digester.update(bytes);
  write(sha256, bytes.size(), learnt_, digester.finish());
  return sha256;
}

std::optional<KnownChunks::Compressed> KnownChunks::compressed(const Digest& sha256) const {
  const std::optional<std::string> text = read_statement(compressed_path(sha256), cache_);
  Compressed stored;
  if (!text || text->size() != Digest::kSize + sizeof stored.size) return std::nullopt;
  std::memcpy(stored.sha256.bytes.data(), text->data(), Digest::kSize);
  std::memcpy(&stored.size, text->data() + Digest::kSize, sizeof stored.size);
  return stored;
}

void KnownChunks::write_compressed(const Digest& sha256, const Compressed& stored) const {
  std::string text(bundle::as_text(stored.sha256.bytes));
  text.append(reinterpret_cast<const char*>(&stored.size), sizeof stored.size);
  state(compressed_path(sha256), bundle::as_bytes(text));
}

bool KnownChunks::is_compared_tree(const Digest& sha256) const {
  return read_statement(folder_ / (sha256.hex() + "-tree"), cache_).has_value();
}

void KnownChunks::write_compared_tree(const Digest& sha256) const {
  state(folder_ / (sha256.hex() + "-tree"), {});
}

}  // namespace sealift::packager
