// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/archive/tar.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "bundle/archive/tar_header.hpp"
#include "sealift/bundle/archive/archive_tree.hpp"

namespace sealift::bundle {

static_assert(kTarBlock == detail::kTarHeaderSize);

std::string write_tar_header(const TarMember& member) {
  const char type = member.type == TarType::File ? '0' : member.type == TarType::Folder ? '5' : '2';
  const std::string path = member.type == TarType::Folder ? member.path + "/" : member.path;
  const std::uint64_t size = member.type == TarType::File ? member.size : 0;
  std::string pax;
  if (path.size() > 100) pax += detail::pax_record("path", path);
  if (member.target.size() > 100) pax += detail::pax_record("linkpath", member.target);
  if (size > detail::kMaxUstarSize) pax += detail::pax_record("size", std::to_string(size));
  if (!member.comment.empty()) pax += detail::pax_record("comment", member.comment);
  std::string out;
  if (!pax.empty()) {
    const detail::TarHeader extra = detail::tar_header("pax", 'x', pax.size(), false, "");
    out.append(extra.raw.data(), kTarBlock)
        .append(pax)
        .resize(kTarBlock + (pax.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
  }
  const detail::TarHeader header = detail::tar_header(path, type, size, member.executable, member.target);
  return out.append(header.raw.data(), kTarBlock);
}

std::string write_aligned_tar_header(TarMember member, std::uint64_t offset, std::size_t alignment) {
  for (;;) {
    std::string header = write_tar_header(member);
    if ((offset + header.size()) % alignment == 0) return header;
    member.comment.append(member.comment.empty() ? 1 : kTarBlock, '-');
  }
}

std::string digest_comment(const Digest& sha256) {
  return "sha256 " + sha256.hex();
}

std::optional<Digest> digest_of_comment(std::string_view comment) {
  return comment.starts_with("sha256 ") ? Digest::from_hex(comment.substr(7)) : std::nullopt;
}

class TarReader::State {
 public:
  State(Handler handler, std::string where) : handler_(std::move(handler)), where_(std::move(where)) {}

  void feed(ByteView bytes) {
    while (!bytes.empty()) {
      std::size_t used = 0;
      if (data_left_ > 0)
        used = take_data(bytes);
      else if (padding_left_ > 0)
        padding_left_ -= used = check_zeros(bytes.first(std::min(padding_left_, bytes.size())));
      else
        used = take_block(bytes);
      bytes = bytes.subspan(used);
      offset_ += used;
    }
  }

  void finish() const {
    if (zero_blocks_ != 2 || filled_ != 0) refuse("the archive is not closed by two zero blocks");
    if (const auto* link = link_that_leads_out(tree_.links()))
      throw Error(ErrorCode::Format,
                  {.what = "a tar archive is not acceptable: a symbolic link leads out of it through "
                           "others, or in a circle",
                   .where = where_ + ", " + SafePath::printable(link->first),
                   .expected = "a target inside the archive",
                   .got = SafePath::printable(link->second)});
  }

 private:
  std::size_t take_data(ByteView bytes) {
    const ByteView piece = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(data_left_, bytes.size())));
    if (in_pax_)
      pax_.append(as_text(piece));
    else
      handler_.data(piece);
    data_left_ -= piece.size();
    if (data_left_ == 0 && in_pax_) read_pax();
    return piece.size();
  }

  std::size_t take_block(ByteView bytes) {
    if (filled_ == 0) header_offset_ = offset_;
    const std::size_t used = std::min(kTarBlock - filled_, bytes.size());
    std::memcpy(header_.raw.data() + filled_, bytes.data(), used);
    filled_ += used;
    if (filled_ == kTarBlock) {
      filled_ = 0;
      read_header();
    }
    return used;
  }

  std::size_t check_zeros(ByteView bytes) const {
    for (const std::byte byte : bytes)
      if (byte != std::byte{0}) refuse("padding is not zero");
    return bytes.size();
  }

  void read_header() {
    if (std::all_of(header_.raw.begin(), header_.raw.end(), [](char c) { return c == '\0'; })) {
      if (!extra_.empty()) refuse("a pax header stands before no member");
      if (++zero_blocks_ > 2) refuse("something follows the end of the archive");
      return;
    }
    if (zero_blocks_ > 0) refuse("something follows the end of the archive");
    if (octal(148, 8) != header_.checksum()) refuse("a header's checksum is wrong");
    if (header_.text(257, 6) != "ustar") refuse("a header is not ustar");
    if (header_.raw[345] != '\0') refuse("a name is split by ustar's prefix field");
    const char type = header_.raw[156];
    if (type == 'x' && extra_.empty())
      begin_pax();
    else if (type == '0' || type == '5' || type == '2')
      begin_member(type);
    else
      refuse("a member is neither file, folder nor symbolic link");
  }

  void begin_pax() {
    data_left_ = octal(124, 12);
    if (data_left_ == 0 || data_left_ > 16384) refuse("a pax header has an unlikely size");
    padding_left_ = tar_padding(data_left_);
    in_pax_ = true;
    pax_.clear();
    spelled_.assign(header_.raw.data(), kTarBlock);
  }

  void read_pax() {
    in_pax_ = false;
    spelled_.append(pax_).append(padding_left_, '\0');  // feed() checks that it is zeros before the next header is read
    for (std::string_view rest = pax_; !rest.empty();) {
      const std::size_t space = rest.find(' '), equals = rest.find('=');
      std::size_t length = 0;
      for (const char c : rest.substr(0, std::min<std::size_t>(space, 6))) {
        if (c < '0' || c > '9') refuse("a pax record has no length");
        length = length * 10 + static_cast<std::size_t>(c - '0');
      }
      if (space == rest.npos || equals == rest.npos || equals < space || length <= equals + 1 || length > rest.size() ||
          rest[length - 1] != '\n')
        refuse("a pax record does not parse");
      const std::string key(rest.substr(space + 1, equals - space - 1));
      const std::string_view value = rest.substr(equals + 1, length - equals - 2);
      const bool known = key == "path" || key == "linkpath" || key == "size";
      if (!known && !(key == "comment" && digest_of_comment(value))) refuse("a pax record is of an unknown kind");
      if (!extra_.emplace(key, value).second) refuse("a pax record stands twice");
      rest.remove_prefix(length);
    }
  }

  void begin_member(char type) {
    const auto extra = [this](const char* key) { return extra_.contains(key) ? &extra_[key] : nullptr; };
    TarMember member;
    member.path = extra("path") != nullptr ? *extra("path") : std::string(header_.text(0, 100));
    member.type = type == '0' ? TarType::File : type == '5' ? TarType::Folder : TarType::Link;
    if (member.type == TarType::Folder && member.path.ends_with('/')) member.path.pop_back();
    const SafePath safe = SafePath::parse(member.path, place());
    const std::uint64_t written = octal(124, 12);
    const std::uint64_t size = extra("size") != nullptr ? decimal(*extra("size")) : written;
    if (extra("size") != nullptr && written != 0) refuse("a member has two sizes");
    if (size != 0 && member.type != TarType::File) refuse("a folder or link has bytes");
    member.size = size;
    member.executable = (octal(100, 8) & 0100) != 0 && member.type == TarType::File;
    member.target = extra("linkpath") != nullptr ? *extra("linkpath") : std::string(header_.text(157, 100));
    if (member.type != TarType::Link && !member.target.empty()) refuse("a member other than a link has a target");
    if (extra("comment") != nullptr) member.comment = *extra("comment");
    const char* fault = member.type == TarType::File     ? tree_.add_file(safe)
                        : member.type == TarType::Folder ? tree_.add_folder(safe)
                                                         : tree_.add_link(safe, member.target);
    if (fault != nullptr) refuse(fault, member.path);
    if (write_tar_header(member) != spelled_.append(header_.raw.data(), kTarBlock))
      refuse("a header has a mode, an owner, a time or a spelling that Sealift does not write", member.path);
    spelled_.clear();
    extra_.clear();
    data_left_ = size;
    padding_left_ = tar_padding(size);
    handler_.begin(member);
  }

  std::uint64_t octal(std::size_t offset, std::size_t size) const {
    std::uint64_t value = 0;
    const std::string_view field(header_.raw.data() + offset, size);
    const std::string_view digits = field.substr(0, field.find_first_of(std::string_view("\0 ", 2)));
    for (const char c : digits) {
      if (c < '0' || c > '7') refuse("a number is not octal");
      value = value * 8 + static_cast<std::uint64_t>(c - '0');
    }
    return value;
  }
  std::uint64_t decimal(std::string_view digits) const {
    std::uint64_t value = 0;
    if (digits.empty() || digits.size() > 15) refuse("a pax size is not a number");
    for (const char c : digits) {
      if (c < '0' || c > '9') refuse("a pax size is not a number");
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return value;
  }

  // Names the header that is being read or was read last.
  std::string place() const { return where_ + " at offset " + std::to_string(header_offset_); }
  [[noreturn]] void refuse(const char* why, std::string_view member = {}) const {
    throw Error(ErrorCode::Format,
                {.what = std::string("a tar archive is not acceptable: ") + why,
                 .where = place() + (member.empty() ? "" : ", member " + SafePath::printable(member))});
  }

  Handler handler_;
  std::string where_;
  detail::TarHeader header_;
  std::size_t filled_ = 0;  // bytes of header_ so far
  std::uint64_t data_left_ = 0;
  std::size_t padding_left_ = 0;
  bool in_pax_ = false;
  std::string pax_;
  std::string spelled_;                       // the pax header as read, with its padding
  std::map<std::string, std::string> extra_;  // pax records for the next member
  ArchiveTree tree_;
  int zero_blocks_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t header_offset_ = 0;
};

TarReader::TarReader(Handler handler, std::string where)
    : state_(std::make_unique<State>(std::move(handler), std::move(where))) {}

TarReader::~TarReader() = default;

void TarReader::feed(ByteView bytes) {
  state_->feed(bytes);
}

void TarReader::finish() const {
  state_->finish();
}

}  // namespace sealift::bundle
