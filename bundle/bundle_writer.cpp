// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/bundle_writer.hpp"

#include <algorithm>
#include <utility>

#include "bundle/archive/zstd.hpp"
#include "bundle/oci_image.hpp"
#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"
#include "sealift/bundle/open_bundle.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"
#include "sealift/bundle/payload/chunk_digester.hpp"
#include "sealift/bundle/payload/recovery_writer.hpp"
#include "sealift/bundle/trust/seal.hpp"

namespace sealift::bundle {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

std::string blob_path(const Digest& digest) {
  return "blobs/sha256/" + digest.hex();
}

[[noreturn]] void refuse_input(const Entry& entry, std::string where, std::string expected, std::string got) {
  throw Error(ErrorCode::Digest, {.what = "an input differs from the locked one: " + entry.path.text(),
                                  .where = std::move(where),
                                  .expected = std::move(expected),
                                  .got = std::move(got),
                                  .next = "remove it and run the same command again"});
}

void check(const Entry& entry, const ByteSource& source, std::uint64_t size, const Digest& got,
           const Digest& expected) {
  if (source.size() == size && got == expected) return;
  refuse_input(entry, source.name(), std::to_string(size) + " bytes, sha256 " + expected.hex(),
               std::to_string(source.size()) + " bytes, sha256 " + got.hex());
}

// Gives the entry's stored bytes to `sink`, and fills in their sizes and digests; throws unless `source` is what it
// says.
void encode(Entry& entry, ByteSource& source, const ByteSink& sink) {
  Hasher plain, stored;
  entry.stored_size = 0;
  const ByteSink take = [&](ByteView piece) {
    stored.update(piece);
    entry.stored_size += piece.size();
    sink(piece);
  };
  ZstdEncoder encoder(source.size());
  for (std::uint64_t offset = 0; offset < source.size();) {
    const ByteView piece = source.view(offset, kPiece);
    plain.update(piece);
    encoder.feed(piece, take);
    offset += piece.size();
  }
  encoder.finish(take);
  entry.stored_sha256 = stored.finish();
  check(entry, source, entry.size, plain.finish(), entry.sha256);
}

// The same for one that is stored as it is.
void pass_on(Entry& entry, ByteSource& source, const ByteSink& sink) {
  Hasher hasher;
  for (std::uint64_t offset = 0; source.size() == entry.size && offset < source.size();) {
    const ByteView piece = source.view(offset, kPiece);
    hasher.update(piece);
    sink(piece);
    offset += piece.size();
  }
  check(entry, source, entry.size, hasher.finish(), entry.sha256);
  entry.stored_size = entry.size;
  entry.stored_sha256 = entry.sha256;
}

}  // namespace

std::string compression_name() {
  return ZstdEncoder::name();
}

StoredForm stored_form(Entry draft, ByteSource& source, const Payload& payload, const ByteSink& sink) {
  StoredForm form{.entry = std::move(draft), .chunks = {}};
  ChunkDigester digester(payload.chunk_size, payload.digest);
  const ByteSink take = [&](ByteView piece) {
    digester.update(piece);
    if (sink) sink(piece);
  };
  if (form.entry.encoding == Encoding::Zstd)
    encode(form.entry, source, take);
  else
    pass_on(form.entry, source, take);
  form.chunks = digester.finish();
  form.entry.content = content_digest(form.entry, payload, form.chunks);
  return form;
}

BundleWriter::BundleWriter(std::filesystem::path folder, Manifest draft, std::uint64_t volume_size)
    : folder_(std::move(folder)),
      manifest_(std::move(draft)),
      volume_size_(volume_size),
      payload_(folder_, manifest_.stem(), manifest_.payload.chunk_size, volume_size, manifest_.payload.digest) {
  append_member("oci-layout", std::string(kOciLayoutText));
}

void BundleWriter::add(Entry draft, ByteSource& source) {
  if (draft.encoding == Encoding::Zstd) {
    add_compressed(std::move(draft), source);
    return;
  }
  if (draft.encoding == Encoding::Identity) {
    draft.stored_size = draft.size;
    draft.stored_sha256 = draft.sha256;
  }
  store(draft, [&] { copy_checked(draft, source, true); });
}

void BundleWriter::add(Entry draft, const std::filesystem::path& file, std::vector<Digest> known,
                       PayloadWriter::OnRead on_read) {
  if (draft.encoding == Encoding::Identity) {
    draft.stored_size = draft.size;
    draft.stored_sha256 = draft.sha256;
  }
  if (const std::uint64_t size = InputFile(file).size(); size != draft.stored_size)
    refuse_input(draft, file.string(), std::to_string(draft.stored_size) + " bytes", std::to_string(size) + " bytes");
  store(draft, [&] {
    known_.insert_or_assign(draft.path, Known{.first = payload_.chunk_count(), .chunks = std::move(known)});
    payload_.append_file(file, draft.stored_size, std::move(on_read));
  });
}

std::vector<SafePath> BundleWriter::other_than_known() {
  std::vector<SafePath> others;
  const std::vector<Digest>& all = payload_.chunks();
  for (const auto& [path, known] : known_) {
    const Entry& entry = *manifest_.find(path);
    const std::uint64_t size = manifest_.payload.chunk_size, count = (entry.stored_size + size - 1) / size;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(known.first);
    if (!std::equal(first, first + static_cast<std::ptrdiff_t>(count), known.chunks.begin(), known.chunks.end()))
      others.push_back(path);
  }
  return others;
}

void BundleWriter::add_again(const SafePath& path, ByteSource& source) {
  const Entry& entry = *manifest_.find(path);
  Hasher hasher;
  if (source.size() == entry.stored_size)
    payload_.overwrite(entry.offset, entry.stored_size, [&](std::uint64_t offset, std::span<std::byte> memory) {
      source.read_exactly(offset, memory);
      hasher.update(memory);
    });
  check(entry, source, entry.stored_size, hasher.finish(), entry.stored_sha256);
  known_.erase(path);
}

void BundleWriter::add_absent(Entry draft) {
  draft.absent = true;
  draft.encoding = Encoding::Identity;
  draft.offset = draft.stored_size = 0;
  draft.stored_sha256 = draft.base = {};
  manifest_.entries.push_back(std::move(draft));
}

Manifest BundleWriter::finish(std::vector<Envelope> roots, std::span<const PrivateKey> keys) {
  compare_known();
  append_index();
  append_text(tar_end());
  manifest_.payload = payload_.finish();
  layout_.emplace(manifest_.payload);
  name_contents(manifest_, payload_.chunks());
  add_recovery();
  manifest_.installer_level = std::max(manifest_.installer_level, needed_installer_level(manifest_));
  Seal seal{.roots = std::move(roots)};
  seal.manifest.payload = write_manifest(manifest_);
  parse_manifest(seal.manifest.payload, manifest_.stem());  // what we sign must be what every reader accepts
  for (const PrivateKey& key : keys) add_signature(seal.manifest, key);
  write_text(folder_ / (manifest_.stem() + std::string(kSealSuffix)), write_seal(seal));
  return std::move(manifest_);
}

void BundleWriter::ask_recovery(unsigned percent, std::function<void(std::uint64_t)> progress) {
  recovery_percent_ = percent;
  recovery_progress_ = std::move(progress);
}

// Of the payload as it is on disk now: what the disk has changed since is noticed here.
void BundleWriter::add_recovery() {
  if (recovery_percent_ == 0) return;
  const PayloadReader reader(folder_, manifest_.payload, payload_.chunks());
  manifest_.payload.recovery = write_recovery(reader, recovery_of_percent(manifest_.payload, recovery_percent_),
                                              folder_, manifest_.stem(), volume_size_, recovery_progress_);
}

std::vector<Digest> BundleWriter::chunks(const Entry& entry) const {
  if (entry.absent) return {};
  const std::span<const Digest> found = chunks_of(entry, layout_.value(), payload_.chunks());
  return {found.begin(), found.end()};
}

void BundleWriter::compare_known() {
  for (const SafePath& path : other_than_known()) {
    const Entry& entry = *manifest_.find(path);
    refuse_input(entry, folder_.string(), "the chunks of sha256 " + entry.stored_sha256.hex(), "other ones");
  }
}

// `append` brings the entry's stored bytes, chunks of their own, unless an equal entry has brought them.
void BundleWriter::store(Entry entry, const Append& append) {
  auto known = blobs_.find(entry.stored_sha256);
  if (known == blobs_.end()) {
    const std::uint64_t before = payload_.size();
    append_text(write_aligned_tar_header({.path = blob_path(entry.stored_sha256), .size = entry.stored_size}, before,
                                         ChunkBuffer::kAlignment));
    payload_.begin_chunk();
    const std::uint64_t offset = payload_.size();
    try {
      append();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Digest) payload_.cut_back(before);
      throw;
    }
    payload_.begin_chunk();
    append_text(std::string(tar_padding(entry.stored_size), '\0'));
    known = blobs_.emplace(entry.stored_sha256, offset).first;
  }
  entry.offset = known->second;
  manifest_.entries.push_back(std::move(entry));
}

// `hashed`: by SHA-256, which is compared at once.
void BundleWriter::copy_checked(const Entry& entry, ByteSource& source, bool hashed) {
  Hasher hasher;
  for (std::uint64_t offset = 0; source.size() == entry.stored_size && offset < source.size();) {
    const ByteView piece = source.view(offset, kPiece);
    if (hashed) hasher.update(piece);
    payload_.append(piece);
    offset += piece.size();
  }
  check(entry, source, entry.stored_size, hashed ? hasher.finish() : entry.stored_sha256, entry.stored_sha256);
}

void BundleWriter::add_compressed(Entry entry, ByteSource& source) {
  const std::filesystem::path partial = folder_ / ".blob.partial";
  std::filesystem::remove(partial);  // of an attempt that was refused
  {
    OutputFile file(partial);
    encode(entry, source, [&](ByteView piece) { file.write(piece); });
  }
  FileSource compressed(partial);
  store(entry, [&] { copy_checked(entry, compressed, false); });  // it was hashed while it was written
  std::filesystem::remove(partial);
}

void BundleWriter::append_index() {
  append_member(blob_path(sha256(as_bytes(kOciConfigText))), std::string(kOciConfigText));
  const std::string image = oci_image_text(manifest_);
  append_member(blob_path(sha256(as_bytes(image))), image);
  append_member("index.json", oci_index_text(image, manifest_.stem()));
}

void BundleWriter::append_text(std::string_view text) {
  payload_.append(as_bytes(text));
}

void BundleWriter::append_member(const std::string& path, const std::string& text) {
  append_text(write_tar_header({.path = path, .size = text.size()}));
  append_text(text);
  append_text(std::string(tar_padding(text.size()), '\0'));
}

}  // namespace sealift::bundle
