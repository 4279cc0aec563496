// SPDX-License-Identifier: Apache-2.0
// lead (96 bytes) -> signature header, padded to 8 -> header. Each is an index of 16-byte rows before a store of
// values. Source: rpm's docs/manual/format_v4.md and tags.md. A mirror chose every byte, so counts are bounded before
// use.
#include "packager/rpm/rpm_header.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

namespace {

using bundle::ByteSource;
using bundle::Error;
using bundle::ErrorCode;

constexpr std::uint64_t kLeadSize = 96, kRowSize = 16, kMaxText = std::uint64_t{1} << 16;
constexpr std::uint32_t kMaxRows = 1u << 16, kMaxStore = 256u << 20;  // rpm's own limits
struct RpmTag {
  static constexpr std::uint32_t Name = 1000, Version = 1001, Release = 1002, Epoch = 1003, Vendor = 1011,
                                 License = 1014, Arch = 1022, SourceRpm = 1044;
};
struct RpmType {
  static constexpr std::uint32_t Int32 = 4, String = 6, I18nString = 9;
};

[[noreturn]] void refuse_header(const ByteSource& package, const std::string& what, const std::string& got = {}) {
  throw Error(ErrorCode::Format, {.what = "this is no rpm package that can be read: " + what,
                                  .where = package.name(),
                                  .got = got,
                                  .next = "the repository has a damaged file; take another mirror"});
}

std::uint32_t big_endian(bundle::ByteView bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

bool begins_with(bundle::ByteView bytes, const std::array<unsigned char, 4>& magic) {
  return std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return a == std::to_integer<unsigned char>(b); });
}

struct Section {
  std::uint64_t index = 0;  // where its rows begin
  std::uint64_t store = 0;
  std::uint32_t rows = 0, bytes = 0;

  std::uint64_t end() const { return store + bytes; }
};

Section section_at(ByteSource& package, std::uint64_t offset) {
  const bundle::Bytes intro = package.read(offset, kRowSize);
  if (!begins_with(intro, {0x8e, 0xad, 0xe8, 0x01})) refuse_header(package, "a header does not begin as one");
  Section section{.index = offset + kRowSize, .rows = big_endian(intro, 8), .bytes = big_endian(intro, 12)};
  if (section.rows > kMaxRows || section.bytes > kMaxStore)
    refuse_header(package, "a header is larger than any",
                  std::to_string(section.rows) + " rows, " + std::to_string(section.bytes) + " bytes");
  section.store = section.index + section.rows * kRowSize;
  if (section.end() > package.size()) refuse_header(package, "a header ends behind its file");
  return section;
}

// The first value of each tag that is asked for.
class Header {
 public:
  Header(ByteSource& package, const Section& section) : package_(package), section_(section) {
    const bundle::Bytes rows = package.read(section.index, section.rows * kRowSize);
    for (std::size_t at = 0; at < rows.size(); at += kRowSize)
      places_.try_emplace(big_endian(rows, at), Place{big_endian(rows, at + 4), big_endian(rows, at + 8)});
  }

  bool has(std::uint32_t tag) const { return places_.contains(tag); }

  std::string text(std::uint32_t tag, const char* what) const {
    const auto found = places_.find(tag);
    if (found == places_.end()) return {};
    const auto [type, offset] = found->second;
    if ((type != RpmType::String && type != RpmType::I18nString) || offset >= section_.bytes)
      refuse_header(package_, std::string("its ") + what + " is no text");
    const std::uint64_t room = std::min<std::uint64_t>(section_.bytes - offset, kMaxText);
    const bundle::Bytes bytes = package_.read(section_.store + offset, room);
    const std::string_view seen = bundle::as_text(bytes);
    const std::size_t end = seen.find('\0');
    if (end == seen.npos) refuse_header(package_, std::string("its ") + what + " has no end");
    return std::string(seen.substr(0, end));
  }

  std::string number(std::uint32_t tag, const char* what) const {
    const auto found = places_.find(tag);
    if (found == places_.end()) return "0";
    const auto [type, offset] = found->second;
    if (type != RpmType::Int32 || section_.bytes < 4 || offset > section_.bytes - 4)
      refuse_header(package_, std::string("its ") + what + " is no number");
    return std::to_string(big_endian(package_.read(section_.store + offset, 4), 0));
  }

 private:
  struct Place {
    std::uint32_t type, offset;
  };

  ByteSource& package_;
  Section section_;
  std::map<std::uint32_t, Place> places_;
};

}  // namespace

RpmHeader read_rpm_header(ByteSource& package) {
  if (package.size() < kLeadSize + 2 * kRowSize) refuse_header(package, "it is too short");
  const bundle::Bytes lead = package.read(0, kLeadSize);
  if (!begins_with(lead, {0xed, 0xab, 0xee, 0xdb})) refuse_header(package, "it does not begin as one");
  const unsigned major = std::to_integer<unsigned>(lead[4]);
  if (major != 3 && major != 4) refuse_header(package, "its version is unknown", std::to_string(major));
  const Section signatures = section_at(package, kLeadSize);
  const Header header(package, section_at(package, (signatures.end() + 7) / 8 * 8));
  RpmHeader found{.name = header.text(RpmTag::Name, "name"),
                  .epoch = header.number(RpmTag::Epoch, "epoch"),
                  .version = header.text(RpmTag::Version, "version"),
                  .release = header.text(RpmTag::Release, "release"),
                  .arch = header.text(RpmTag::Arch, "architecture"),
                  .licence = header.text(RpmTag::License, "licence"),
                  .vendor = header.text(RpmTag::Vendor, "vendor"),
                  .source = !header.has(RpmTag::SourceRpm)};
  if (found.name.empty() || found.version.empty() || found.release.empty() || found.arch.empty())
    refuse_header(package, "it has no name, version, release or architecture");
  return found;
}

}  // namespace sealift::packager
