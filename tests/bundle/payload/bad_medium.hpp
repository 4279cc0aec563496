// SPDX-License-Identifier: Apache-2.0
// A bundle with recovery data on a medium that a test damages piece by piece.
#pragma once

#include <random>

#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

namespace fs = std::filesystem;

inline bundle::Bytes piece_bytes(std::uint32_t seed, std::size_t size) {
  std::mt19937 random(seed);
  bundle::Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline TinyBundle with_recovery(unsigned percent) {
  TinyBundle tiny{.volume_size = 32768, .recovery = percent};
  tiny.items.clear();
  for (std::uint32_t i = 0; i < 12; ++i) {
    const bundle::Bytes bytes = piece_bytes(i, 500 + i * i * 700);
    tiny.items.push_back({.path = "files/" + std::to_string(10 + i),
                          .bytes = std::string(bundle::as_text(bytes)),
                          .into = "share/" + std::to_string(i)});
  }
  return tiny;
}

// A bundle on a bad medium.
struct BadMedium {
  TempDir dir;
  MadeBundle made;
  bundle::RecoveryLayout layout;
  bundle::ChunkLayout chunks;
  std::vector<std::string> whole;  // the volumes as they were made

  explicit BadMedium(unsigned percent)
      : made(make_bundle(dir / "b", with_recovery(percent))),
        layout(made.manifest.payload, *made.manifest.payload.recovery),
        chunks(made.manifest.payload) {
    for (std::size_t i = 0; i < made.manifest.payload.volumes.size(); ++i) whole.push_back(read_file(made.volume(i)));
  }

  void flip(const fs::path& file, std::uint64_t offset) const {
    std::string bytes = read_file(file);
    bytes.at(static_cast<std::size_t>(offset)) ^= 1;
    write_file(file, bytes);
  }
  void flip_payload(std::uint64_t offset) const {
    std::size_t volume = 0;
    while (offset >= made.manifest.payload.volumes[volume].size) offset -= made.manifest.payload.volumes[volume++].size;
    flip(made.volume(volume), offset);
  }
  void flip_piece(std::uint64_t piece) const {  // in its last chunk
    flip_payload(chunks.begin_of(layout.first_chunk(piece + 1)) - 1);
  }
  void flip_recovery(std::uint64_t chunk) const {
    std::uint64_t offset = chunk * layout.piece_size();
    std::size_t file = 0;
    while (offset >= made.manifest.payload.recovery->files[file].size)
      offset -= made.manifest.payload.recovery->files[file++].size;
    flip(made.recovery(file), offset);
  }
  bundle::VerifiedBundle verified() const {
    bundle::OpenBundle opened = bundle::open(made.folder);
    opened.ask = [](const bundle::Volume&, const bundle::Error&) { return std::nullopt; };
    return bundle::verify(opened, made.trusted, kNow);
  }
  // The payload as it can be had, or the refusal.
  std::string mended(bundle::Damage& damage) const {
    const bundle::VerifiedBundle verified = this->verified();
    bundle::DamagedPayload payload(verified, {made.folder});
    damage = payload.survey(2);
    std::string out;
    bundle::ChunkBuffer memory;
    for (std::uint64_t chunk = 0; chunk < chunks.count(); ++chunk) {
      if (payload.read(chunk, memory)) {
        out += bundle::as_text(memory.view());
        continue;
      }
      payload.rebuild(chunk, [&](std::uint64_t one, bundle::ByteView bytes) {
        if (one == chunk) out += bundle::as_text(bytes);
      });
    }
    return out;
  }
  std::string payload() const {
    std::string all;
    for (const std::string& volume : whole) all += volume;
    return all;
  }
};

}  // namespace sealift::test
