// SPDX-License-Identifier: Apache-2.0
// Zip archives as wheels use them, and the only door to zlib: directory first, zip64, stored or deflated.
// Whatever two zip programs could read differently is refused: overlaps, duplicates, comments that hide a second
// directory, names that differ between directory and member. Format: PKWARE APPNOTE 6.3.9.
#pragma once

#include <zlib.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "sealift/bundle/byte_source.hpp"
#include "sealift/bundle/safe_path.hpp"

namespace sealift::bundle {

struct ZipMember {
  std::string name;  // a SafePath's text
  std::uint64_t size = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t header_offset = 0;
  std::uint32_t crc32 = 0;
  bool deflated = false;
  bool executable = false;  // the Unix mode says so
};

class ZipReader {
 public:
  static constexpr std::uint64_t kMaxDirectory = std::uint64_t{256} << 20;

  // Reads the directory; folders are left out. `source` must outlive the reader.
  explicit ZipReader(ByteSource& source) : source_(source) { read_directory(); }

  const std::vector<ZipMember>& members() const { return members_; }

  // Gives the member's bytes to `sink` in order; throws Format unless size and CRC-32 are those of the directory.
  // What the sink got must not be used before this returns.
  void extract(const ZipMember& member, const std::function<void(ByteView)>& sink) {
    const std::uint64_t begin = data_offset(member);
    std::uint64_t left = member.size;
    uLong crc = ::crc32(0, nullptr, 0);
    const auto pass_on = [&](ByteView piece) {
      if (piece.size() > left) refuse("more comes out than the directory says", member.name);
      left -= piece.size();
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
      sink(piece);
    };
    if (member.deflated)
      inflate_into(member, begin, pass_on);
    else
      for (std::uint64_t at = 0; at < member.size;) {
        const ByteView piece =
            source_.view(begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(member.size - at, kPiece)));
        at += piece.size();
        pass_on(piece);
      }
    if (left != 0) refuse("less comes out than the directory says", member.name);
    if (crc != member.crc32) refuse("the CRC-32 is wrong", member.name);
  }

  std::string extract_text(const ZipMember& member, std::uint64_t max_size) {
    if (member.size > max_size) refuse("a text file is too large", member.name);
    std::string text;
    extract(member, [&text](ByteView piece) { text.append(as_text(piece)); });
    return text;
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;
  static constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
  static constexpr std::uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;

  static std::uint64_t number(ByteView bytes, std::size_t offset, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
    return value;
  }

  void read_directory() {
    if (source_.size() < 22) refuse("it is too short for a zip");
    const std::uint64_t end_offset = source_.size() - 22;
    const Bytes end = source_.read(end_offset, 22);
    if (number(end, 0, 4) != kEnd || number(end, 20, 2) != 0)
      refuse("it does not end with a zip directory without comment");
    if (number(end, 4, 2) != 0 || number(end, 6, 2) != 0) refuse("it is one disk of several");
    std::uint64_t count = number(end, 10, 2), size = number(end, 12, 4), offset = number(end, 16, 4);
    if (number(end, 8, 2) != count) refuse("its directory counts differ");
    std::uint64_t tail = end_offset;  // where the directory must end
    if (count == 0xffff || size == 0xffffffff || offset == 0xffffffff)
      tail = read_end64(end_offset, count, size, offset);
    if (size > kMaxDirectory) refuse("its directory is too large");
    if (offset > tail || size != tail - offset) refuse("its directory is not where it says");
    if (count > size / 46) refuse("its directory is shorter than its count says");
    const Bytes directory = source_.read(offset, size);
    members_.reserve(static_cast<std::size_t>(count));
    std::size_t at = 0;
    std::uint64_t seen = 0;
    std::set<std::string> names;
    for (; seen < count; ++seen) at = read_entry(directory, at, names);
    if (at != directory.size()) refuse("its directory has bytes left over");
    check_apart(offset);
  }

  std::uint64_t read_end64(std::uint64_t end_offset, std::uint64_t& count, std::uint64_t& size, std::uint64_t& offset) {
    if (end_offset < 20) refuse("its zip64 locator is missing");
    const Bytes locator = source_.read(end_offset - 20, 20);
    if (number(locator, 0, 4) != kLocator64 || number(locator, 4, 4) != 0 || number(locator, 16, 4) != 1)
      refuse("its zip64 locator is missing");
    const std::uint64_t at = number(locator, 8, 8);
    const Bytes end64 = source_.read(at, 56);
    if (number(end64, 0, 4) != kEnd64 || number(end64, 4, 8) != 44 || at + 56 != end_offset - 20)
      refuse("its zip64 directory end is not where it says");
    if (number(end64, 24, 8) != number(end64, 32, 8)) refuse("its directory counts differ");
    count = number(end64, 32, 8);
    size = number(end64, 40, 8);
    offset = number(end64, 48, 8);
    return at;
  }

  std::size_t read_entry(ByteView directory, std::size_t at, std::set<std::string>& names) {
    if (directory.size() - at < 46 || number(directory, at, 4) != kCentral) refuse("a directory entry is cut short");
    const ByteView fixed = directory.subspan(at, 46);
    const std::size_t name_size = number(fixed, 28, 2), extra_size = number(fixed, 30, 2),
                      comment_size = number(fixed, 32, 2);
    if (directory.size() - at - 46 < name_size + extra_size + comment_size) refuse("a directory entry is cut short");
    ZipMember member;
    member.name = as_text(directory.subspan(at + 46, name_size));
    const std::uint64_t flags = number(fixed, 8, 2), method = number(fixed, 10, 2), made_by = number(fixed, 5, 1);
    const std::uint64_t unix_mode = made_by == 3 ? number(fixed, 38, 4) >> 16 : 0;
    member.crc32 = static_cast<std::uint32_t>(number(fixed, 16, 4));
    member.compressed_size = number(fixed, 20, 4);
    member.size = number(fixed, 24, 4);
    member.header_offset = number(fixed, 42, 4);
    member.deflated = method == 8;
    member.executable = (unix_mode & 0100) != 0;
    read_zip64_extra(directory.subspan(at + 46 + name_size, extra_size), member);
    const std::size_t next = at + 46 + name_size + extra_size + comment_size;
    if ((flags & 0x2041) != 0) refuse("a member is encrypted", member.name);
    if (method != 0 && method != 8) refuse("a member is compressed by a method other than deflate", member.name);
    if (!member.deflated && member.size != member.compressed_size) refuse("a stored member has two sizes", member.name);
    if ((unix_mode & 0170000) == 0120000) refuse("a member is a symbolic link", member.name);
    const bool folder = member.name.ends_with('/');
    const std::string bare = folder ? member.name.substr(0, member.name.size() - 1) : member.name;
    SafePath::parse(bare, source_.name());
    if (!names.insert(bare).second) refuse("a name stands twice", member.name);
    if (folder && member.size != 0) refuse("a folder has bytes", member.name);
    if (!folder) members_.push_back(std::move(member));
    return next;
  }

  // Sizes that do not fit 32 bits stand in extra field 1, in this order, only those that are needed.
  void read_zip64_extra(ByteView extra, ZipMember& member) {
    while (extra.size() >= 4) {
      const std::size_t id = number(extra, 0, 2), size = number(extra, 2, 2);
      if (size > extra.size() - 4) refuse("an extra field is cut short", member.name);
      if (id == 1) {
        ByteView body = extra.subspan(4, size);
        for (std::uint64_t* field : {&member.size, &member.compressed_size, &member.header_offset}) {
          if (*field != 0xffffffff) continue;
          if (body.size() < 8) refuse("a zip64 field is cut short", member.name);
          *field = number(body, 0, 8);
          body = body.subspan(8);
        }
        return;
      }
      extra = extra.subspan(4 + size);
    }
  }

  // Members must not share bytes: that is how a small zip unpacks to terabytes.
  void check_apart(std::uint64_t directory_offset) const {
    std::vector<const ZipMember*> order;
    for (const ZipMember& member : members_) order.push_back(&member);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->header_offset < b->header_offset; });
    std::uint64_t end = 0;
    for (const ZipMember* member : order) {
      if (member->header_offset < end) refuse("two members overlap", member->name);
      const std::uint64_t least = 30 + member->name.size();
      if (member->header_offset > directory_offset || directory_offset - member->header_offset < least ||
          directory_offset - member->header_offset - least < member->compressed_size)
        refuse("a member lies outside the archive", member->name);
      end = member->header_offset + least + member->compressed_size;
    }
  }

  std::uint64_t data_offset(const ZipMember& member) {
    const Bytes local = source_.read(member.header_offset, 30 + member.name.size());
    const std::uint64_t name_size = number(local, 26, 2), extra_size = number(local, 28, 2);
    if (number(local, 0, 4) != kLocal || name_size != member.name.size() ||
        as_text(ByteView(local).subspan(30)) != member.name || number(local, 8, 2) != (member.deflated ? 8u : 0u))
      refuse("directory and member disagree", member.name);
    const std::uint64_t begin = member.header_offset + 30 + name_size + extra_size;
    if (begin > source_.size() || member.compressed_size > source_.size() - begin)
      refuse("a member lies outside the archive", member.name);
    return begin;
  }

  template <class Sink>
  void inflate_into(const ZipMember& member, std::uint64_t begin, const Sink& sink) {
    struct Stream : z_stream {
      Stream() : z_stream{} {}
      ~Stream() { inflateEnd(this); }
    } stream;
    if (inflateInit2(&stream, -15) != Z_OK) throw Error(ErrorCode::CannotCheck, {.what = "zlib did not start"});
    Bytes output(kPiece);
    std::uint64_t at = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (stream.avail_in == 0) {
        if (at == member.compressed_size) refuse("the deflate stream is cut short", member.name);
        const ByteView piece = source_.view(
            begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(member.compressed_size - at, kPiece)));
        stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
        stream.avail_in = static_cast<uInt>(piece.size());
        at += piece.size();
      }
      stream.next_out = reinterpret_cast<Bytef*>(output.data());
      stream.avail_out = static_cast<uInt>(output.size());
      status = ::inflate(&stream, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        refuse("the deflate stream is damaged", member.name);
      sink(ByteView(output).first(output.size() - stream.avail_out));
    }
    if (stream.avail_in != 0 || at != member.compressed_size) refuse("bytes follow the deflate stream", member.name);
  }

  [[noreturn]] void refuse(const char* why, std::string_view member = {}) const {
    throw Error(ErrorCode::Format,
                {.what = std::string("a zip archive is not acceptable: ") + why,
                 .where = source_.name() + (member.empty() ? "" : ", member " + SafePath::printable(member))});
  }

  ByteSource& source_;
  std::vector<ZipMember> members_;
};

}  // namespace sealift::bundle
