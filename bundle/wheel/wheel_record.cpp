// SPDX-License-Identifier: Apache-2.0
#include "bundle/wheel/wheel_record.hpp"

#include <utility>

#include "bundle/core/unicode.hpp"
#include "bundle/core/wide_digest.hpp"
#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {
namespace {

class WheelRecordParser {
 public:
  WheelRecordParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  std::map<std::string, WheelRecordRow> parse(std::size_t max_rows) {
    std::map<std::string, WheelRecordRow> rows;
    while (at_ < text_.size()) {
      row_begin_ = at_;
      const std::string path = field(), digest = field(), size = field();
      end_row();
      if (path.empty()) continue;
      const WheelRecordRow row{.sha256 = digest_of(digest), .wide = wide_of(digest), .size = size_of(size)};
      if (const auto [known, fresh] = rows.emplace(path, row); !fresh && !(known->second == row)) known->second = {};
      if (rows.size() > max_rows) refuse("it lists more files than the wheel has", path);
    }
    return rows;
  }

 private:
  // A field with its closing comma; a row's last field stops before its line break.
  std::string field() {
    std::string out;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_;; ++at_) {
        if (at_ >= text_.size()) refuse("it has an open quote");
        if (text_[at_] == '"' && (at_ + 1 == text_.size() || text_[at_ + 1] != '"')) break;
        if (text_[at_] == '"') ++at_;
        out.push_back(text_[at_]);
      }
      ++at_;
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\r' && text_[at_] != '\n')
        out.push_back(text_[at_++]);
    }
    if (at_ < text_.size() && text_[at_] == ',') ++at_;
    return out;
  }
  void end_row() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] != '\n') refuse("it has a row that is not path,digest,size");
    ++at_;
  }

  // Base64 as the specification says, or the digits that some build tools write (bidict 0.24.0).
  static std::optional<Digest> digest_of(std::string_view text) {
    if (!text.starts_with("sha256=")) return std::nullopt;
    text.remove_prefix(7);
    if (text.size() == 64) return Digest::from_hex(case_folded(text));
    const std::optional<Bytes> bytes = from_base64(text, Base64::UrlNoPad);
    return bytes ? Digest::from_bytes(*bytes) : std::nullopt;
  }
  static std::optional<Bytes> wide_of(std::string_view text) {
    const std::size_t size = text.starts_with("sha384=") ? kSha384Size : text.starts_with("sha512=") ? kSha512Size : 0;
    if (size == 0) return std::nullopt;
    text.remove_prefix(7);
    std::optional<Bytes> bytes =
        text.size() == 2 * size ? from_hex(case_folded(text)) : from_base64(text, Base64::UrlNoPad);
    return bytes && bytes->size() == size ? std::move(bytes) : std::nullopt;
  }
  static std::optional<std::uint64_t> size_of(std::string_view text) {
    if (text.empty() || text.size() > 15) return std::nullopt;
    std::uint64_t size = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return std::nullopt;
      size = size * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return size;
  }

  std::string place() const { return std::string(where_) + ", RECORD at offset " + std::to_string(row_begin_); }
  [[noreturn]] void refuse(const char* why, const std::string& path = {}) const {
    throw Error(ErrorCode::Format, {.what = std::string("a wheel is not acceptable: its RECORD does not hold: ") + why,
                                    .where = place(),
                                    .got = SafePath::printable(path)});
  }

  std::string_view text_;
  std::string_view where_;
  std::size_t at_ = 0;
  std::size_t row_begin_ = 0;
};

}  // namespace

std::map<std::string, WheelRecordRow> parse_wheel_record(std::string_view text, std::size_t max_rows,
                                                         std::string_view where) {
  return WheelRecordParser(text, where).parse(max_rows);
}

}  // namespace sealift::bundle
