// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/payload/bundle_folder.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <system_error>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

std::vector<Digest> read_chunk_list(const std::filesystem::path& path, const Payload& payload) {
  const std::uint64_t expected = payload.chunk_count() * Digest::kSize;
  const InputFile file(path);
  if (file.size() != expected)
    throw Error(ErrorCode::Digest, {.what = "the chunk list has the wrong length",
                                    .where = path.string(),
                                    .expected = std::to_string(expected) + " bytes",
                                    .got = std::to_string(file.size()) + " bytes",
                                    .next = "copy it again from its source"});
  std::vector<Digest> chunks(static_cast<std::size_t>(payload.chunk_count()));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(chunks));
  file.read_exactly(0, bytes);
  if (const Digest digest = digest_of(bytes, payload.digest); digest != payload.chunk_list_digest)
    throw Error(ErrorCode::Digest, {.what = "the chunk list differs from what was signed",
                                    .where = path.string(),
                                    .expected = name_of(payload.digest) + " " + payload.chunk_list_digest.hex(),
                                    .got = name_of(payload.digest) + " " + digest.hex(),
                                    .next = "copy it again from its source"});
  return chunks;
}

void refuse_extra_files(const std::filesystem::path& folder, const Manifest& manifest) {
  for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    const std::size_t dot = name.rfind('.');
    const std::string_view suffix = dot == std::string::npos ? std::string_view() : std::string_view(name).substr(dot);
    if (suffix != kChunksSuffix && !suffix.starts_with(".vol")) continue;
    const bool expected = name == manifest.stem() + std::string(kChunksSuffix) ||
                          std::any_of(manifest.payload.volumes.begin(), manifest.payload.volumes.end(),
                                      [&](const Volume& volume) { return volume.name == name; });
    if (!expected)
      throw Error(ErrorCode::Conflict,
                  {.what = "the folder holds a file that the bundle does not have",
                   .where = file.path().string(),
                   .expected = std::to_string(manifest.payload.volumes.size()) + " volume(s) of " + manifest.stem(),
                   .got = SafePath::printable(name),
                   .next = "move it away; bundles are kept one to a folder"});
  }
}

void check_companions(const std::filesystem::path& folder, const Manifest& manifest) {
  for (const Companion& companion : manifest.companions) {
    const std::filesystem::path path = folder / companion.name;
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) continue;
    FileSource source(path);
    Hasher hasher;
    for (std::uint64_t offset = 0; source.size() == companion.size && offset < source.size();) {
      const ByteView piece = source.view(offset, std::size_t{1} << 20);
      hasher.update(piece);
      offset += piece.size();
    }
    if (const Digest digest = hasher.finish(); source.size() != companion.size || digest != companion.sha256)
      throw Error(ErrorCode::Digest, {.what = "a program beside the bundle differs from what was signed",
                                      .where = path.string(),
                                      .expected = "sha256 " + companion.sha256.hex(),
                                      .got = source.size() != companion.size ? std::to_string(source.size()) + " bytes"
                                                                             : "sha256 " + digest.hex(),
                                      .next = "do not run it; copy it again from its source"});
  }
}

}  // namespace sealift::bundle
