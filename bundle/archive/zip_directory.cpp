// SPDX-License-Identifier: Apache-2.0
#include "bundle/archive/zip_directory.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/archive/archive_tree.hpp"

namespace sealift::bundle::detail {
namespace {

constexpr std::uint64_t kMaxZipVersion =
    63;  // the newest "version needed" of APPNOTE that we accept; nothing we read needs more
constexpr std::uint64_t kZipMany = 0xffffffff;  // "see the zip64 field"
// Nothing, deflated: the bytes of a folder that a tool has compressed like a file (PySocks 1.7.1).
constexpr std::string_view kEmptyDeflate = std::string_view("\3\0", 2);

// Reads the extra fields. Field 1 holds the sizes and the offset that do not fit 32 bits, in the order of `fields`:
// only the needed ones, or all of them, if the others are equal to the header's (Python before 3.11.4 writes
// such local headers). Returns whether there was a field 1. Refuses fields that give a member a second name.
bool read_zip_extra(const ByteSource& source, ByteView extra, std::string_view member,
                    std::initializer_list<std::uint64_t*> fields) {
  bool found = false;
  while (!extra.empty()) {
    if (extra.size() < 4 || zip_number(extra, 2, 2) > extra.size() - 4)
      refuse_zip(source, "an extra field is cut short", member);
    const std::size_t id = zip_number(extra, 0, 2), size = zip_number(extra, 2, 2);
    ByteView body = extra.subspan(4, size);
    extra = extra.subspan(4 + size);
    if (id == 0x7075 || id == 0x6375) refuse_zip(source, "an extra field gives a second name", member);
    if (id != 1) continue;
    if (found) refuse_zip(source, "it has two zip64 fields", member);
    found = true;
    const bool all = body.size() == 8 * fields.size();
    for (std::uint64_t* field : fields) {
      if (*field != kZipMany && !all) continue;
      if (body.size() < 8) refuse_zip(source, "a zip64 field is cut short", member);
      const std::uint64_t value = zip_number(body, 0, 8);
      if (*field != kZipMany && *field != value) refuse_zip(source, "a zip64 field contradicts its header", member);
      *field = value;
      body = body.subspan(8);
    }
    if (!body.empty()) refuse_zip(source, "a zip64 field is too long", member);
  }
  return found;
}

class ZipDirectoryReader {
 public:
  explicit ZipDirectoryReader(ByteSource& source) : source_(source) {}

  // All entries, folders included (with a name that ends in '/'), in the directory's order.
  std::vector<ZipMember> read() {
    const End end = find_end();
    if (end.size > kMaxDirectory) refuse("its directory is too large");
    if (end.offset > end.tail || end.size != end.tail - end.offset) refuse("its directory is not where it says");
    if (end.count > end.size / 46) refuse("its directory is shorter than its count says");
    const Bytes directory = source_.read(end.offset, end.size);
    members_.reserve(static_cast<std::size_t>(end.count));
    std::size_t at = 0;
    for (std::uint64_t seen = 0; seen < end.count; ++seen) at = read_entry(directory, at);
    if (at != directory.size()) refuse("its directory has bytes left over");
    set_ends(end.offset);
    return std::move(members_);
  }

 private:
  static constexpr std::uint64_t kMaxDirectory = std::uint64_t{32} << 20;
  static constexpr std::uint32_t kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;

  struct End {
    std::uint64_t count, size, offset;
    std::uint64_t tail;  // where the directory must end
  };

  End find_end() {
    if (source_.size() < 22) refuse("it is too short for a zip");
    const std::uint64_t at = find_last_end();
    const Bytes raw = source_.read(at, 22);
    if (zip_number(raw, 4, 4) != 0) refuse("it is one disk of several");
    End end{zip_number(raw, 10, 2), zip_number(raw, 12, 4), zip_number(raw, 16, 4), at};
    if (zip_number(raw, 8, 2) != end.count) refuse("its directory counts differ");
    const bool needed = end.count == 0xffff || end.size == kZipMany || end.offset == kZipMany;
    const Bytes locator = at < 20 ? Bytes() : source_.read(at - 20, 20);
    const bool there = !locator.empty() && zip_number(locator, 0, 4) == kLocator64;
    if (needed != there) refuse(needed ? "its zip64 locator is missing" : "it has a zip64 locator without need");
    return needed ? read_end64(locator, at - 20, end) : end;
  }

  // The last mark of a directory's end counts, for every reader, if its comment reaches to the end of
  // the archive: then no other can stand in the comment. A comment is 65,535 bytes at most.
  std::uint64_t find_last_end() {
    const std::uint64_t bare = source_.size() - 22;
    if (const Bytes raw = source_.read(bare, 22); zip_number(raw, 0, 4) == kEnd && zip_number(raw, 20, 2) == 0)
      return bare;
    const std::uint64_t begin = bare - std::min<std::uint64_t>(bare, 0xffff);
    const Bytes tail = source_.read(begin, source_.size() - begin);
    const std::size_t mark = as_text(tail).rfind(std::string_view("PK\5\6"));
    if (mark == std::string_view::npos || tail.size() - mark < 22 ||
        zip_number(tail, mark + 20, 2) != tail.size() - mark - 22)
      refuse("it does not end with one zip directory and its comment");
    return begin + mark;
  }

  End read_end64(const Bytes& locator, std::uint64_t locator_offset, const End& small) {
    if (zip_number(locator, 4, 4) != 0 || zip_number(locator, 16, 4) != 1) refuse("it is one disk of several");
    const std::uint64_t at = zip_number(locator, 8, 8);
    if (locator_offset < 56 || at != locator_offset - 56) refuse("its zip64 directory end is not where it says");
    const Bytes raw = source_.read(at, 56);
    if (zip_number(raw, 0, 4) != kEnd64 || zip_number(raw, 4, 8) != 44 || zip_number(raw, 16, 8) != 0)
      refuse("its zip64 directory end is not where it says");
    const End end{zip_number(raw, 32, 8), zip_number(raw, 40, 8), zip_number(raw, 48, 8), at};
    if (zip_number(raw, 24, 8) != end.count || (small.count != 0xffff && small.count != end.count) ||
        (small.size != kZipMany && small.size != end.size) || (small.offset != kZipMany && small.offset != end.offset))
      refuse("its two directory ends differ");
    return end;
  }

  std::size_t read_entry(ByteView directory, std::size_t at) {
    if (directory.size() - at < 46 || zip_number(directory, at, 4) != kCentral)
      refuse("a directory entry is cut short");
    const ByteView fixed = directory.subspan(at, 46);
    const std::size_t name_size = zip_number(fixed, 28, 2), extra_size = zip_number(fixed, 30, 2);
    if (directory.size() - at - 46 < name_size + extra_size) refuse("a directory entry is cut short");
    ZipMember member;
    member.name = as_text(directory.subspan(at + 46, name_size));
    member.flags = static_cast<std::uint16_t>(zip_number(fixed, 8, 2));
    member.crc32 = static_cast<std::uint32_t>(zip_number(fixed, 16, 4));
    member.compressed_size = zip_number(fixed, 20, 4);
    member.size = zip_number(fixed, 24, 4);
    member.header_offset = zip_number(fixed, 42, 4);
    member.deflated = zip_number(fixed, 10, 2) == 8;
    read_zip_extra(source_, directory.subspan(at + 46 + name_size, extra_size), member.name,
                   {&member.size, &member.compressed_size, &member.header_offset});
    if (zip_number(fixed, 32, 2) != 0) refuse("a member has a comment", member.name);
    if (zip_number(fixed, 34, 2) != 0) refuse("it is one disk of several", member.name);
    if (zip_number(fixed, 6, 2) > kMaxZipVersion) refuse("a member needs a newer reader", member.name);
    check_entry(member, zip_number(fixed, 10, 2), zip_number(fixed, 38, 4) >> 16, zip_number(fixed, 5, 1));
    members_.push_back(std::move(member));
    return at + 46 + name_size + extra_size;
  }

  void check_entry(ZipMember& member, std::uint64_t method, std::uint64_t mode, std::uint64_t made_by) {
    if ((member.flags & 0x2041) != 0) refuse("a member is encrypted", member.name);
    if (method != 0 && method != 8) refuse("a member is compressed by a method other than deflate", member.name);
    if (!member.deflated && member.size != member.compressed_size) refuse("a stored member has two sizes", member.name);
    if (!member.deflated && (member.flags & 8) != 0) refuse("a stored member's size stands behind it", member.name);
    if (member.size / 1032 > member.compressed_size) refuse("a member claims more than deflate can hold", member.name);
    if ((member.flags & 0x800) == 0 && !is_ascii(member.name))
      refuse("a name is neither ASCII nor marked as UTF-8", member.name);
    const bool folder = member.name.ends_with('/');
    const std::uint64_t type = mode & 0170000;
    if (type == 0120000) refuse("a member is a symbolic link", member.name);
    if (type != 0 && type != (folder ? 0040000u : 0100000u))
      refuse("a member is neither a file nor a folder", member.name);
    if ((mode & 06000) != 0) refuse("a member is setuid or setgid", member.name);
    member.executable = made_by == 3 && (mode & 0111) != 0;  // as pip and uv have it
    const std::string_view name = std::string_view(member.name).substr(0, member.name.size() - (folder ? 1 : 0));
    const SafePath path = SafePath::parse_published(name, source_.name());
    if (const char* fault = folder ? tree_.add_folder(path) : tree_.add_file(path)) refuse(fault, member.name);
    const bool bare = member.compressed_size == 0 || member.compressed_size == kEmptyDeflate.size();
    if (folder && (member.size != 0 || !bare)) refuse("a folder has bytes", member.name);
  }

  // Members must follow each other from the first byte on: with shared bytes a small zip unpacks to terabytes, and
  // bytes between members are seen by some programs only.
  void set_ends(std::uint64_t directory_offset) {
    std::vector<ZipMember*> order;
    for (ZipMember& member : members_) order.push_back(&member);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->header_offset < b->header_offset; });
    if ((order.empty() ? directory_offset : order.front()->header_offset) != 0)
      refuse("something stands before its first member");
    for (std::size_t i = 0; i < order.size(); ++i) {
      ZipMember& member = *order[i];
      member.end_offset = i + 1 < order.size() ? order[i + 1]->header_offset : directory_offset;
      const std::uint64_t least = 30 + member.name.size();
      if (member.header_offset > directory_offset) refuse("a member lies outside the archive", member.name);
      if (member.end_offset < member.header_offset + least ||
          member.end_offset - member.header_offset - least < member.compressed_size)
        refuse("two members overlap", member.name);
    }
  }

  [[noreturn]] void refuse(const char* why, std::string_view member = {}) const { refuse_zip(source_, why, member); }

  ByteSource& source_;
  std::vector<ZipMember> members_;
  ArchiveTree tree_;
};

}  // namespace

[[noreturn]] void refuse_zip(const ByteSource& source, const char* why, std::string_view member) {
  throw Error(ErrorCode::Format,
              {.what = std::string("a zip archive is not acceptable: ") + why,
               .where = source.name() + (member.empty() ? "" : ", member " + SafePath::printable(member))});
}

ZipBody check_zip_header(ByteSource& source, const ZipMember& member) {
  for (const ZipMember& folder : member.folders) check_zip_end(source, folder, check_zip_header(source, folder));
  const auto refuse = [&](const char* why) { refuse_zip(source, why, member.name); };
  const Bytes local = source.read(member.header_offset, 30 + member.name.size());
  const std::size_t name_size = zip_number(local, 26, 2), extra_size = zip_number(local, 28, 2);
  constexpr std::uint64_t kFlags = 0x2849;  // encryption, sizes behind the bytes, strong encryption, UTF-8, hidden
  if (zip_number(local, 4, 2) > kMaxZipVersion) refuse("a member needs a newer reader");
  if (zip_number(local, 0, 4) != 0x04034b50 || name_size != member.name.size() ||
      as_text(ByteView(local).subspan(30)) != member.name || zip_number(local, 8, 2) != (member.deflated ? 8u : 0u) ||
      ((zip_number(local, 6, 2) ^ member.flags) & kFlags) != 0)
    refuse("directory and member disagree");
  const Bytes extra = source.read(member.header_offset + 30 + name_size, extra_size);
  std::uint64_t size = zip_number(local, 22, 4), compressed = zip_number(local, 18, 4), crc = zip_number(local, 14, 4);
  const bool behind = (member.flags & 8) != 0;
  const bool wide = read_zip_extra(source, extra, member.name, {&size, &compressed});
  const bool silent = behind && crc == 0 && (size == 0 || size == kZipMany) &&
                      (compressed == 0 || compressed == kZipMany);  // sizes follow
  if (!silent && (crc != member.crc32 || size != member.size || compressed != member.compressed_size))
    refuse("directory and member disagree");
  const std::uint64_t begin = member.header_offset + 30 + name_size + extra_size;
  if (member.name.ends_with('/') && member.compressed_size != 0 &&
      as_text(source.read(begin, kEmptyDeflate.size())) != kEmptyDeflate)
    refuse("a folder has bytes");
  if (begin > member.end_offset || member.end_offset - begin < member.compressed_size) refuse("two members overlap");
  return {.begin = begin, .wide = wide};
}

void check_zip_end(ByteSource& source, const ZipMember& member, const ZipBody& body) {
  const auto refuse = [&](const char* why) { refuse_zip(source, why, member.name); };
  const bool behind = (member.flags & 8) != 0;
  const std::uint64_t rest = member.end_offset - body.begin - member.compressed_size;
  if (!behind && rest == 0) return;
  // A data descriptor: [signature] CRC-32 compressed size, each size of 4 or, with zip64, of 8 bytes.
  const std::size_t width = body.wide ? 8 : 4, signature = rest == 4 + 4 + 2 * width ? 4 : 0;
  if (!behind || rest != signature + 4 + 2 * width) refuse("bytes that belong to no member follow it");
  const Bytes descriptor = source.read(body.begin + member.compressed_size, rest);
  const ByteView values = ByteView(descriptor).subspan(signature);
  if ((signature != 0 && zip_number(descriptor, 0, 4) != 0x08074b50) || zip_number(values, 0, 4) != member.crc32 ||
      zip_number(values, 4, width) != member.compressed_size || zip_number(values, 4 + width, width) != member.size)
    refuse("directory and member disagree");
}

std::vector<ZipMember> read_zip_directory(ByteSource& source) {
  std::vector<ZipMember> members = ZipDirectoryReader(source).read();
  std::vector<ZipMember*> order;
  for (ZipMember& member : members) order.push_back(&member);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->header_offset < b->header_offset; });
  std::vector<ZipMember> folders;
  for (ZipMember* member : order) {
    if (member->name.ends_with('/'))
      folders.push_back(*member);
    else
      member->folders = std::exchange(folders, {});
  }
  for (const ZipMember& last : folders) check_zip_end(source, last, check_zip_header(source, last));
  std::erase_if(members, [](const ZipMember& member) { return member.name.ends_with('/'); });
  return members;
}

}  // namespace sealift::bundle::detail
