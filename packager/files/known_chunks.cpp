// SPDX-License-Identifier: Apache-2.0
// One file each: the digests, and behind them their SHA-256; see known_chunks.hpp.
#include "packager/files/known_chunks.hpp"

#include <cstring>
#include <span>

#include "packager/host/scratch_folder.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;

KnownChunks::KnownChunks(const Cache& cache) : folder_(cache.root() / "chunks") {
  fs::create_directories(folder_);
}

fs::path KnownChunks::path(const Digest& sha256, const bundle::Payload& payload) const {
  return folder_ / (sha256.hex() + "-" + name_of(payload.digest) + "-" + std::to_string(payload.chunk_size));
}

std::optional<std::vector<Digest>> KnownChunks::read(const Digest& sha256, const bundle::Payload& payload) const {
  const fs::path file = path(sha256, payload);
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(file, error))) return std::nullopt;
  const std::string text = bundle::read_text(file, (bundle::kMaxChunks + 1) * Digest::kSize);
  if (text.size() < Digest::kSize || text.size() % Digest::kSize != 0) return std::nullopt;
  const bundle::ByteView body = bundle::as_bytes(text).first(text.size() - Digest::kSize);
  if (bundle::sha256(body) != Digest::from_bytes(bundle::as_bytes(text).subspan(body.size()))) return std::nullopt;
  std::vector<Digest> chunks(body.size() / Digest::kSize);
  if (!chunks.empty()) std::memcpy(chunks.data(), body.data(), body.size());
  return chunks;
}

void KnownChunks::write(const Digest& sha256, const bundle::Payload& payload, const std::vector<Digest>& chunks) const {
  const bundle::ByteView body = std::as_bytes(std::span(chunks));
  const ScratchFolder scratch("new", folder_);
  {
    bundle::OutputFile file(scratch / "file");  // not synced: what a crash tears counts as not known
    file.write(body);
    file.write(bundle::sha256(body).bytes);
  }
  fs::rename(scratch / "file", path(sha256, payload));
}

}  // namespace sealift::packager
