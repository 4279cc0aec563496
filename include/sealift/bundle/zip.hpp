// SPDX-License-Identifier: Apache-2.0
// The bytes of a zip archive's members, stored or deflated, and the only door to zlib.
// Which archives are acceptable at all is zip_directory.hpp's business; a member's own header is checked when its bytes
// are asked for, so that opening an archive costs its directory and not a seek for every member.
#pragma once

#include <zlib.h>

#include <functional>
#include <string>
#include <vector>

#include "sealift/bundle/zip_directory.hpp"

namespace sealift::bundle {

class ZipReader {
 public:
  // `source` must outlive the reader.
  explicit ZipReader(ByteSource& source) : source_(source), members_(read_zip_directory(source)) {}

  const std::vector<ZipMember>& members() const { return members_; }

  // Gives the member's bytes to `sink` in order; throws Format unless size and CRC-32 are those of the directory.
  // What the sink got must not be used before this returns.
  void extract(const ZipMember& member, const std::function<void(ByteView)>& sink) {
    std::uint64_t left = member.size;
    uLong crc = ::crc32(0, nullptr, 0);
    const bool whole = for_each_piece(member, [&](ByteView piece) {
      if (piece.size() > left) refuse("more comes out than the directory says", member.name);
      left -= piece.size();
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
      sink(piece);
      return true;
    });
    if (!whole || left != 0) refuse("less comes out than the directory says", member.name);
    if (crc != member.crc32) refuse("the CRC-32 is wrong", member.name);
  }

  std::string extract_text(const ZipMember& member, std::uint64_t max_size) {
    if (member.size > max_size) refuse("a text file is too large", member.name);
    std::string text;
    extract(member, [&text](ByteView piece) { text.append(as_text(piece)); });
    return text;
  }

  // The first `count` bytes, or all when there are fewer; not checked against the CRC-32.
  std::string start_of(const ZipMember& member, std::size_t count) {
    std::string text;
    for_each_piece(member, [&](ByteView piece) {
      text.append(as_text(piece.first(std::min(piece.size(), count - text.size()))));
      return text.size() < count;
    });
    return text;
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;

  // Calls `take` until it returns false or everything was read; says whether everything was.
  template <class Take>
  bool for_each_piece(const ZipMember& member, const Take& take) {
    const std::uint64_t begin = detail::check_zip_header(source_, member);
    if (member.deflated) return inflate_into(member, begin, take);
    for (std::uint64_t at = 0; at < member.size;) {
      const ByteView piece =
          source_.view(begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(member.size - at, kPiece)));
      at += piece.size();
      if (!take(piece)) return false;
    }
    return true;
  }

  template <class Take>
  bool inflate_into(const ZipMember& member, std::uint64_t begin, const Take& take) {
    struct Stream : z_stream {
      Stream() : z_stream{} {}
      ~Stream() { inflateEnd(this); }
    } stream;
    if (inflateInit2(&stream, -15) != Z_OK) throw Error(ErrorCode::CannotCheck, {.what = "zlib did not start"});
    Bytes output(kPiece);
    std::uint64_t at = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      // With nothing left to give, zlib may still hold output for which the last piece had no room.
      if (stream.avail_in == 0 && at < member.compressed_size) {
        const ByteView piece = source_.view(
            begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(member.compressed_size - at, kPiece)));
        stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
        stream.avail_in = static_cast<uInt>(piece.size());
        at += piece.size();
      }
      stream.next_out = reinterpret_cast<Bytef*>(output.data());
      stream.avail_out = static_cast<uInt>(output.size());
      status = ::inflate(&stream, Z_NO_FLUSH);
      if (status == Z_BUF_ERROR) refuse("the deflate stream is cut short", member.name);
      if (status != Z_OK && status != Z_STREAM_END) refuse("the deflate stream is damaged", member.name);
      const ByteView piece = ByteView(output).first(output.size() - stream.avail_out);
      if (!piece.empty() && !take(piece)) return false;
    }
    if (stream.avail_in != 0 || at != member.compressed_size) refuse("bytes follow the deflate stream", member.name);
    return true;
  }

  [[noreturn]] void refuse(const char* why, std::string_view member) const { detail::refuse_zip(source_, why, member); }

  ByteSource& source_;
  std::vector<ZipMember> members_;
};

}  // namespace sealift::bundle
