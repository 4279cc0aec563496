// SPDX-License-Identifier: Apache-2.0
// The only door to ISA-L, whose igzip inflates twice as fast as zlib; inflating wheels is most of what installing
// costs. igzip accepts an incomplete Huffman code of which no byte uses the missing part, where zlib refuses; size and
// CRC-32 are checked all the same.
#include "sealift/bundle/archive/zip.hpp"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bundle/archive/zip_directory.hpp"

namespace sealift::bundle {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

// 340 kB, so on the heap; not cleared, since most members are smaller.
struct Inflating {
  inflate_state stream;
  std::array<std::byte, kPiece> output;
};

// As for_each_piece, for the deflated bytes at `begin`.
template <class Take>
bool inflate_into(ByteSource& source, const ZipMember& member, std::uint64_t begin, const Take& take) {
  const auto work = std::make_unique_for_overwrite<Inflating>();
  inflate_state& stream = work->stream;
  isal_inflate_init(&stream);  // for a raw deflate stream, with nothing to read
  std::uint64_t at = 0;
  while (stream.block_state != ISAL_BLOCK_FINISH) {
    // With no input left, igzip may still hold output for which the last piece had no room.
    if (stream.avail_in == 0 && at < member.compressed_size) {
      const ByteView piece = source.view(
          begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(member.compressed_size - at, kPiece)));
      stream.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(piece.data()));
      stream.avail_in = static_cast<std::uint32_t>(piece.size());
      at += piece.size();
    }
    const std::uint32_t given = stream.avail_in;
    stream.next_out = reinterpret_cast<std::uint8_t*>(work->output.data());
    stream.avail_out = static_cast<std::uint32_t>(work->output.size());
    if (isal_inflate(&stream) != ISAL_DECOMP_OK)
      detail::refuse_zip(source, "the deflate stream is damaged", member.name);
    const ByteView piece = ByteView(work->output).first(work->output.size() - stream.avail_out);
    // igzip has no error code for a stream that ends too soon: it consumes nothing and produces nothing.
    if (stream.block_state != ISAL_BLOCK_FINISH && piece.empty() && stream.avail_in == given)
      detail::refuse_zip(source, "the deflate stream is cut short", member.name);
    if (!piece.empty() && !take(piece)) return false;
  }
  // read_in_length counts bits that igzip has read ahead; eight or more are whole bytes that it did not use.
  if (stream.avail_in != 0 || stream.read_in_length >= 8 || at != member.compressed_size)
    detail::refuse_zip(source, "bytes follow the deflate stream", member.name);
  return true;
}

// Calls `take` until it returns false or everything was read; returns whether everything was.
template <class Take>
bool for_each_piece(ByteSource& source, const ZipMember& member, std::uint64_t begin, const Take& take) {
  if (member.deflated) return inflate_into(source, member, begin, take);
  for (std::uint64_t at = 0; at < member.size;) {
    const ByteView piece =
        source.view(begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(member.size - at, kPiece)));
    at += piece.size();
    if (!take(piece)) return false;
  }
  return true;
}

}  // namespace

ZipReader::ZipReader(ByteSource& source) : source_(source), members_(detail::read_zip_directory(source)) {}

void ZipReader::extract(const ZipMember& member, const ByteSink& sink) {
  extract_from(source_, member, sink);
}

void ZipReader::extract_from(ByteSource& source, const ZipMember& member, const ByteSink& sink) {
  const auto refuse = [&](const char* why) { detail::refuse_zip(source, why, member.name); };
  const detail::ZipBody body = detail::check_zip_header(source, member);
  std::uint64_t left = member.size;
  std::uint32_t crc = 0;
  const bool whole = for_each_piece(source, member, body.begin, [&](ByteView piece) {
    if (piece.size() > left) refuse("more comes out than the directory says");
    left -= piece.size();
    crc = crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(piece.data()), piece.size());
    sink(piece);
    return true;
  });
  if (!whole || left != 0) refuse("less comes out than the directory says");
  if (crc != member.crc32) refuse("the CRC-32 is wrong");
  detail::check_zip_end(source, member, body);
}

std::string ZipReader::extract_text(const ZipMember& member, std::uint64_t max_size) {
  if (member.size > max_size) detail::refuse_zip(source_, "a text file is too large", member.name);
  std::string text;
  extract(member, [&text](ByteView piece) { text.append(as_text(piece)); });
  return text;
}

std::uint64_t ZipReader::begin_of(ByteSource& source, const ZipMember& member) {
  return detail::check_zip_header(source, member).begin;
}

std::string ZipReader::start_of(const ZipMember& member, std::size_t count) {
  std::string text;
  for_each_piece(source_, member, detail::check_zip_header(source_, member).begin, [&](ByteView piece) {
    text.append(as_text(piece.first(std::min(piece.size(), count - text.size()))));
    return text.size() < count;
  });
  return text;
}

}  // namespace sealift::bundle
