// SPDX-License-Identifier: Apache-2.0
// A wheel read as the packaging specification says: what it holds, where each file goes, which digest each must have.
// Packager and installer both ask here, so a wheel that cannot be installed is refused before it crosses the gap.
// Source: packaging.python.org, "Binary distribution format" and "Recording installed projects".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/digest.hpp"
#include "sealift/bundle/zip.hpp"

namespace sealift::bundle {

// NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl taken apart; name and version as the file spells them.
struct WheelName {
  std::string name;
  std::string version;
  std::string python_tag;
  std::string abi_tag;
  std::string platform_tag;
};

inline std::optional<WheelName> parse_wheel_name(std::string_view file_name) {
  if (!file_name.ends_with(".whl")) return std::nullopt;
  file_name.remove_suffix(4);
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= file_name.size();) {
    const std::size_t end = std::min(file_name.find('-', begin), file_name.size());
    parts.emplace_back(file_name.substr(begin, end - begin));
    if (parts.back().empty()) return std::nullopt;
    begin = end + 1;
  }
  if (parts.size() != 5 && parts.size() != 6) return std::nullopt;
  const std::size_t tags = parts.size() - 3;
  return WheelName{parts[0], parts[1], parts[tags], parts[tags + 1], parts[tags + 2]};
}

// PEP 503: lower case, runs of '-', '_' and '.' become one '-'.
inline std::string normalized_project_name(std::string_view name) {
  std::string out;
  bool run = false;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
    else if (!run)
      out.push_back('-');
    run = separator;
  }
  return out;
}

// Where a file of a wheel belongs. The installer maps each to a folder of the prefix.
enum class Scheme {
  SitePackages,  // purelib and platlib, which are one folder for us
  Scripts,
  Headers,
  Data,  // the prefix itself
};

struct WheelFile {
  ZipMember member;
  Scheme scheme = Scheme::SitePackages;
  std::string path;  // below the scheme's folder; a SafePath's text
  Digest sha256;
  bool executable = false;
  bool python_script = false;  // starts with "#!python" and gets the environment's interpreter
};

struct EntryPoint {
  std::string script;    // the program's name
  std::string module;    // what it imports
  std::string function;  // what it calls, attributes joined by '.'
};

class Wheel {
 public:
  // Reads directory, WHEEL, RECORD, METADATA and entry points; throws Format or CannotCheck. `source` must outlive it.
  Wheel(ByteSource& source, std::string_view file_name) : zip_(source), where_(file_name) {
    const std::optional<WheelName> parsed = parse_wheel_name(file_name);
    if (!parsed) refuse("its file name is not NAME-VERSION-PYTHON-ABI-PLATFORM.whl");
    name_ = *parsed;
    find_dist_info();
    read_wheel_file();
    metadata_ = text_of(dist_info_ + "/METADATA");
    assign_files(read_record());
    if (const ZipMember* points = find(dist_info_ + "/entry_points.txt"))
      read_entry_points(zip_.extract_text(*points, kMaxText));
  }

  const WheelName& name() const { return name_; }
  const std::string& dist_info() const { return dist_info_; }     // NAME-VERSION.dist-info
  const std::string& metadata() const { return metadata_; }       // METADATA as it stands in the wheel
  const std::vector<WheelFile>& files() const { return files_; }  // all but RECORD and its signatures
  const std::vector<EntryPoint>& entry_points() const { return entry_points_; }

  // The value of a METADATA header such as "Requires-Python", if it is there.
  std::optional<std::string> metadata_field(std::string_view field) const {
    for (std::size_t begin = 0; begin < metadata_.size();) {
      std::size_t end = std::min(metadata_.find('\n', begin), metadata_.size());
      const std::string_view line = std::string_view(metadata_).substr(begin, end - begin);
      if (line.empty() || line == "\r") return std::nullopt;
      if (line.starts_with(field) && line.substr(field.size()).starts_with(": ")) {
        std::string_view value = line.substr(field.size() + 2);
        if (value.ends_with('\r')) value.remove_suffix(1);
        return std::string(value);
      }
      begin = end + 1;
    }
    return std::nullopt;
  }

  // Streams one file and throws Digest unless its bytes are those that RECORD promises. What the sink got must not be
  // used before this returns.
  void extract(const WheelFile& file, const std::function<void(ByteView)>& sink) {
    Hasher hasher;
    zip_.extract(file.member, [&](ByteView piece) {
      hasher.update(piece);
      sink(piece);
    });
    if (const Digest digest = hasher.finish(); digest != file.sha256)
      throw Error(ErrorCode::Digest, {.what = "a file of a wheel is not the one that its RECORD lists",
                                      .where = where_ + ", " + SafePath::printable(file.member.name),
                                      .expected = "sha256 " + file.sha256.hex(),
                                      .got = "sha256 " + digest.hex(),
                                      .next = "this wheel is damaged at its source; use another build of it"});
  }

 private:
  static constexpr std::uint64_t kMaxText = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kMaxRecord = std::uint64_t{256} << 20;

  const ZipMember* find(std::string_view name) const {
    for (const ZipMember& member : zip_.members())
      if (member.name == name) return &member;
    return nullptr;
  }
  std::string text_of(const std::string& name) {
    const ZipMember* member = find(name);
    if (member == nullptr) refuse("it has no " + name);
    return zip_.extract_text(*member, kMaxText);
  }

  void find_dist_info() {
    for (const ZipMember& member : zip_.members()) {
      const std::string top = member.name.substr(0, member.name.find('/'));
      if (!top.ends_with(".dist-info") || top == dist_info_) continue;
      if (!dist_info_.empty()) refuse("it has more than one .dist-info folder");
      dist_info_ = top;
    }
    const std::string stem = dist_info_.substr(0, dist_info_.rfind('.'));
    const std::string project = stem.substr(0, stem.find('-'));
    if (dist_info_.empty() || normalized_project_name(project) != normalized_project_name(name_.name))
      refuse("it has no .dist-info folder of its own name");
  }

  void read_wheel_file() {
    const std::string text = text_of(dist_info_ + "/WHEEL");
    const std::size_t at = text.find("Wheel-Version: ");
    if (at == std::string::npos) refuse("its WHEEL file names no version");
    if (!std::string_view(text).substr(at + 15).starts_with("1."))
      throw Error(ErrorCode::CannotCheck, {.what = "a wheel is of a version that this program does not know",
                                           .where = where_,
                                           .expected = "Wheel-Version: 1.x"});
  }

  // RECORD is CSV: path, sha256=<urlsafe base64>, size. Returns path -> digest; rows without digest map to nothing.
  std::map<std::string, std::optional<Digest>> read_record() {
    const ZipMember* member = find(dist_info_ + "/RECORD");
    if (member == nullptr) refuse("it has no RECORD");
    const std::string text = zip_.extract_text(*member, kMaxRecord);
    std::map<std::string, std::optional<Digest>> rows;
    for (std::size_t at = 0; at < text.size();) {
      const std::string path = csv_field(text, at);
      const std::string hash = csv_field(text, at);
      csv_field(text, at);
      end_row(text, at);
      if (path.empty()) continue;
      std::optional<Digest> digest;
      if (!hash.empty()) {
        if (!hash.starts_with("sha256="))
          throw Error(ErrorCode::CannotCheck, {.what = "a RECORD row has a digest other than sha256",
                                               .where = where_,
                                               .got = SafePath::printable(path + " " + hash)});
        const std::optional<Bytes> bytes = from_base64(std::string_view(hash).substr(7), Base64::UrlNoPad);
        digest = bytes ? Digest::from_bytes(*bytes) : std::nullopt;
        if (!digest) refuse("a RECORD row has a digest that does not parse: " + SafePath::printable(path));
      }
      if (!rows.emplace(path, digest).second) refuse("a RECORD row stands twice: " + SafePath::printable(path));
    }
    return rows;
  }

  // A field with its closing comma; a row's last field stops before its line break.
  std::string csv_field(const std::string& text, std::size_t& at) const {
    std::string field;
    if (at < text.size() && text[at] == '"') {
      for (++at;; ++at) {
        if (at >= text.size()) refuse("its RECORD has an open quote");
        if (text[at] == '"' && (at + 1 == text.size() || text[at + 1] != '"')) break;
        if (text[at] == '"') ++at;
        field.push_back(text[at]);
      }
      ++at;
    } else {
      while (at < text.size() && text[at] != ',' && text[at] != '\r' && text[at] != '\n') field.push_back(text[at++]);
    }
    if (at < text.size() && text[at] == ',') ++at;
    return field;
  }
  void end_row(const std::string& text, std::size_t& at) const {
    if (at < text.size() && text[at] == '\r') ++at;
    if (at < text.size() && text[at] != '\n') refuse("its RECORD has a row that is not path,digest,size");
    ++at;
  }

  // Every file must have a digest in RECORD, every row a file, and every file a place.
  void assign_files(std::map<std::string, std::optional<Digest>> rows) {
    const std::string record = dist_info_ + "/RECORD";
    std::set<std::pair<Scheme, std::string>> places;
    for (const ZipMember& member : zip_.members()) {
      const auto row = rows.find(member.name);
      if (member.name == record || member.name == record + ".jws" || member.name == record + ".p7s") {
        if (row != rows.end()) rows.erase(row);
        continue;
      }
      if (row == rows.end() || !row->second)
        refuse("a file is not listed in RECORD with a digest: " + SafePath::printable(member.name));
      WheelFile file = place(member);
      file.sha256 = *row->second;
      rows.erase(row);
      if (!places.emplace(file.scheme, file.path).second)
        refuse("two files have one place: " + SafePath::printable(file.path));
      if (file.scheme == Scheme::Scripts) {
        file.executable = true;
        std::string start;
        zip_.extract(member, [&start](ByteView piece) {
          start.append(as_text(piece.first(std::min<std::size_t>(piece.size(), 16))));
        });
        file.python_script = start.starts_with("#!python");
      }
      files_.push_back(std::move(file));
    }
    if (!rows.empty()) refuse("RECORD lists a file that is not there: " + SafePath::printable(rows.begin()->first));
  }

  // NAME-VERSION.data/KEY/rest goes to the scheme KEY, everything else to site-packages.
  WheelFile place(const ZipMember& member) const {
    WheelFile file{.member = member, .path = member.name, .executable = member.executable};
    const std::string data = dist_info_.substr(0, dist_info_.rfind('.')) + ".data/";
    if (!member.name.starts_with(data)) return file;
    static const std::map<std::string, Scheme, std::less<>> kSchemes = {{"purelib", Scheme::SitePackages},
                                                                        {"platlib", Scheme::SitePackages},
                                                                        {"scripts", Scheme::Scripts},
                                                                        {"headers", Scheme::Headers},
                                                                        {"data", Scheme::Data}};
    const std::string_view rest = std::string_view(member.name).substr(data.size());
    const std::size_t slash = rest.find('/');
    const auto scheme = kSchemes.find(rest.substr(0, slash));
    if (slash == std::string_view::npos || scheme == kSchemes.end())
      refuse("a file lies in an unknown part of .data: " + SafePath::printable(member.name));
    file.scheme = scheme->second;
    file.path = SafePath::parse(rest.substr(slash + 1), where_).text();
    return file;
  }

  // The console_scripts and gui_scripts sections: "script = module:function [extras]".
  void read_entry_points(const std::string& text) {
    bool scripts = false;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = trimmed(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
      if (line.empty() || line.front() == '#' || line.front() == ';') continue;
      if (line.front() == '[') {
        scripts = line == "[console_scripts]" || line == "[gui_scripts]";
        continue;
      }
      if (!scripts) continue;
      const std::size_t equals = line.find('='), colon = line.find(':', equals);
      if (equals == line.npos || colon == line.npos)
        refuse("an entry point is not NAME = MODULE:FUNCTION: " + SafePath::printable(line));
      EntryPoint point{.script = std::string(trimmed(line.substr(0, equals))),
                       .module = std::string(trimmed(line.substr(equals + 1, colon - equals - 1))),
                       .function = std::string(trimmed(line.substr(colon + 1, line.find('[', colon) - colon - 1)))};
      if (SafePath::parse(point.script, where_).text().find('/') != std::string::npos ||
          !is_dotted_name(point.module) || !is_dotted_name(point.function))
        refuse("an entry point is not NAME = MODULE:FUNCTION: " + SafePath::printable(line));
      entry_points_.push_back(std::move(point));
    }
  }

  static bool is_dotted_name(std::string_view text) {
    if (text.empty() || text.front() == '.' || text.back() == '.') return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    });
  }
  static std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r");
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::Format, {.what = "a wheel is not acceptable: " + why, .where = where_});
  }

  ZipReader zip_;
  std::string where_;
  WheelName name_;
  std::string dist_info_;
  std::string metadata_;
  std::vector<WheelFile> files_;
  std::vector<EntryPoint> entry_points_;
};

}  // namespace sealift::bundle
