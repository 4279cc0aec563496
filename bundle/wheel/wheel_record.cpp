// SPDX-License-Identifier: Apache-2.0
#include "bundle/wheel/wheel_record.hpp"

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
      if (!rows.emplace(path, WheelRecordRow{digest_of(digest, path), size_of(size, path)}).second)
        refuse("a row stands twice", path);
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

  std::optional<Digest> digest_of(const std::string& text, const std::string& path) const {
    if (text.empty()) return std::nullopt;
    if (!text.starts_with("sha256="))
      throw Error(ErrorCode::CannotCheck, {.what = "a RECORD row has a digest other than sha256",
                                           .where = place(),
                                           .got = SafePath::printable(path + " " + text)});
    const std::optional<Bytes> bytes = from_base64(std::string_view(text).substr(7), Base64::UrlNoPad);
    const std::optional<Digest> digest = bytes ? Digest::from_bytes(*bytes) : std::nullopt;
    if (!digest) refuse("a row has a digest that does not parse", path);
    return digest;
  }
  std::optional<std::uint64_t> size_of(const std::string& text, const std::string& path) const {
    if (text.empty()) return std::nullopt;
    std::uint64_t size = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || text.size() > 15) refuse("a row has a size that is no number", path);
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
