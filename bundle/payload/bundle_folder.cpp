// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/payload/bundle_folder.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "bundle/payload/changed_names.hpp"
#include "bundle/payload/left_by_systems.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

namespace {

// `what`: "the chunk list".
std::vector<Digest> read_digests(const std::filesystem::path& path, std::uint64_t count, DigestAlgorithm algorithm,
                                 const Digest& as_signed, const std::string& what) {
  const std::uint64_t expected = count * Digest::kSize;
  std::error_code unseen;
  if (std::filesystem::symlink_status(path, unseen).type() == std::filesystem::file_type::not_found) {
    const auto changed = changed_name(path.parent_path(), path.filename().string());
    throw Error(ErrorCode::Missing, {.what = what + " is missing",
                                     .where = path.string(),
                                     .expected = std::to_string(expected) + " bytes",
                                     .got = changed ? changed->got : "",
                                     .next = changed ? changed->next : "copy it into the bundle's folder"});
  }
  const InputFile file(path);
  if (file.size() != expected)
    throw Error(ErrorCode::Digest, {.what = what + " has the wrong length",
                                    .where = path.string(),
                                    .expected = std::to_string(expected) + " bytes",
                                    .got = std::to_string(file.size()) + " bytes",
                                    .next = "copy it again from its source"});
  std::vector<Digest> digests(static_cast<std::size_t>(count));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(digests));
  file.read_exactly(0, bytes);
  if (const Digest digest = digest_of(bytes, algorithm); digest != as_signed)
    throw Error(ErrorCode::Digest, {.what = what + " differs from what was signed",
                                    .where = path.string(),
                                    .expected = name_of(algorithm) + " " + as_signed.hex(),
                                    .got = name_of(algorithm) + " " + digest.hex(),
                                    .next = "copy it again from its source"});
  return digests;
}

// As a copy in text mode makes of a script.
bool differs_in_line_breaks(const std::filesystem::path& path, const Companion& companion) {
  constexpr std::uint64_t kMostText = std::uint64_t{1} << 20;
  const InputFile file(path);
  if (file.size() <= companion.size || file.size() > kMostText) return false;
  std::string text(static_cast<std::size_t>(file.size()), '\0'), without;
  file.read_exactly(0, std::as_writable_bytes(std::span(text)));
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] != '\r' || at + 1 == text.size() || text[at + 1] != '\n') without += text[at];
  return without.size() == companion.size && sha256(as_bytes(without)) == companion.sha256;
}

bool is_among(const std::vector<Volume>& files, const std::string& name) {
  return std::any_of(files.begin(), files.end(), [&](const Volume& file) { return file.name == name; });
}

constexpr std::size_t kMostNamed = 20, kMostKept = 10'000;  // files that a message names, and that are sorted for it

// By its ending, part of a bundle; not what macOS writes beside one.
bool looks_carried(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::string_view suffix = dot == std::string::npos ? std::string_view() : std::string_view(name).substr(dot);
  return !is_left_by_system(name) &&
         (suffix == kChunksSuffix || suffix.starts_with(".vol") || suffix.starts_with(".rec"));
}

bool is_carried(const std::string& name, const Manifest& manifest) {
  return name == manifest.stem() + std::string(kChunksSuffix) || is_among(manifest.payload.volumes, name) ||
         (manifest.payload.recovery &&
          (name == manifest.stem() + std::string(kRecoverySuffix) || is_among(manifest.payload.recovery->files, name)));
}

std::string told(const std::string& name, const Manifest& manifest) {
  const std::optional<std::string> original = original_name(name);
  const bool copy = original && is_carried(*original, manifest);
  return SafePath::printable(name) + (copy ? " (a second copy of " + *original + ")" : "");
}

// A volume that a disc has renamed looks like a file of nobody's.
void refuse_renamed_files(const std::filesystem::path& folder, const Manifest& manifest) {
  std::vector<Volume> files = manifest.payload.volumes;
  if (manifest.payload.recovery)
    files.insert(files.end(), manifest.payload.recovery->files.begin(), manifest.payload.recovery->files.end());
  for (const Volume& file : files) {
    std::error_code unseen;
    if (std::filesystem::exists(std::filesystem::symlink_status(folder / file.name, unseen))) continue;
    if (const auto changed = changed_name(folder, file.name))
      throw Error(ErrorCode::Missing, {.what = "a volume is missing",
                                       .where = (folder / file.name).string(),
                                       .expected = std::to_string(file.size) + " bytes",
                                       .got = changed->got,
                                       .next = changed->next});
  }
}

}  // namespace

std::vector<Digest> read_chunk_list(const std::filesystem::path& path, const Payload& payload) {
  return read_digests(path, payload.chunk_count(), payload.digest, payload.chunk_list_digest, "the chunk list");
}

std::vector<Digest> read_recovery_list(const std::filesystem::path& path, const Payload& payload) {
  return read_digests(path, payload.recovery->groups * payload.recovery->parity, payload.digest,
                      payload.recovery->list_digest, "the list of recovery chunks");
}

void refuse_extra_files(const std::filesystem::path& folder, const Manifest& manifest) {
  std::vector<std::string> extra;
  std::size_t count = 0;  // of a stranger's medium, which may hold millions
  for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(folder))
    if (const std::string name = file.path().filename().string(); looks_carried(name) && !is_carried(name, manifest))
      if (++count <= kMostKept) extra.push_back(name);
  if (extra.empty()) return;
  refuse_renamed_files(folder, manifest);
  std::sort(extra.begin(), extra.end());
  std::string got;
  for (std::size_t i = 0; i < std::min(extra.size(), kMostNamed); ++i)
    got += (i == 0 ? "" : ", ") + told(extra[i], manifest);
  if (count > kMostNamed) got += ", and " + std::to_string(count - kMostNamed) + " more";
  const bool one = count == 1;
  throw Error(ErrorCode::Conflict,
              {.what = one ? "the folder holds a file that the bundle does not have"
                           : "the folder holds " + std::to_string(count) + " files that the bundle does not have",
               .where = one ? (folder / extra[0]).string() : folder.string(),
               .expected = std::to_string(manifest.payload.volumes.size()) + " volume(s) of " + manifest.stem(),
               .got = got,
               .next = std::string(one ? "move it away" : "move them away") + "; bundles are kept one to a folder"});
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
    if (const Digest digest = hasher.finish(); source.size() != companion.size || digest != companion.sha256) {
      const bool breaks = differs_in_line_breaks(path, companion);
      throw Error(
          ErrorCode::Digest,
          {.what = "a program beside the bundle differs from what was signed",
           .where = path.string(),
           .expected = "sha256 " + companion.sha256.hex(),
           .got = breaks                            ? "the same text with line breaks of Windows (CR LF)"
                  : source.size() != companion.size ? std::to_string(source.size()) + " bytes"
                                                    : "sha256 " + digest.hex(),
           .next = breaks ? "it was copied as text (FTP, an editor, git): copy it again as binary, or take them "
                            "back: sed -i 's/\\r$//' " +
                                SafePath::printable(companion.name)
                          : "do not run it; copy it again from its source"});
    }
  }
}

}  // namespace sealift::bundle
