// SPDX-License-Identifier: Apache-2.0
// A wheel read as the packaging specification says: what it holds, where each file goes, which digest each must have.
// Packager and installer both ask here, so a wheel that cannot be installed is refused before it crosses the gap.
// Source: packaging.python.org, "Binary distribution format" and "Entry points specification".
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"
#include "sealift/bundle/wheel/wheel_record.hpp"
#include "sealift/bundle/wheel/wheel_startup.hpp"
#include "sealift/bundle/archive/zip.hpp"

namespace sealift::bundle {

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
    check_metadata();
    assign_files();
    if (const ZipMember* points = find(dist_info_ + "/entry_points.txt"))
      read_entry_points(zip_.extract_text(*points, kMaxText));
  }

  const WheelName& name() const { return name_; }
  const std::string& dist_info() const { return dist_info_; }     // NAME-VERSION.dist-info
  const std::string& metadata() const { return metadata_; }       // METADATA as it stands in the wheel
  const std::vector<WheelFile>& files() const { return files_; }  // all but RECORD and its signatures
  const std::vector<EntryPoint>& entry_points() const { return entry_points_; }

  // The value of a METADATA header such as "Requires-Python", if it is there.
  std::optional<std::string> metadata_field(std::string_view field) const { return header_field(metadata_, field); }

  // The first `count` bytes of a file, or all when there are fewer; not checked against RECORD.
  std::string start_of(const WheelFile& file, std::size_t count) { return zip_.start_of(file.member, count); }

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
  static constexpr std::uint64_t kMaxRecord = std::uint64_t{64} << 20;

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
    const std::size_t dash = std::min(stem.find('-'), stem.size());
    if (dist_info_.empty() || !is_own(stem.substr(0, dash), stem.substr(std::min(dash + 1, stem.size()))))
      refuse("it has no .dist-info folder of its own name and version");
  }

  bool is_own(std::string_view project, std::string_view version) const {
    return normalized_project_name(project) == normalized_project_name(name_.name) &&
           normalized_version(version) == normalized_version(name_.version);
  }

  // The value of "Field: value" before the first empty line. Fields are compared as mail programs do, without case.
  std::optional<std::string> header_field(std::string_view text, std::string_view field) const {
    std::optional<std::string> value;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      begin = end + 1;
      if (line.empty() || line == "\r") break;
      const std::size_t colon = line.find(':');
      if (colon == line.npos || case_folded(line.substr(0, colon)) != case_folded(field)) continue;
      if (value) refuse("it says " + std::string(field) + " twice");
      value = trimmed(line.substr(colon + 1));
    }
    return value;
  }

  void read_wheel_file() {
    const std::optional<std::string> version = header_field(text_of(dist_info_ + "/WHEEL"), "Wheel-Version");
    if (!version) refuse("its WHEEL file names no version");
    if (!version->starts_with("1."))
      throw Error(ErrorCode::CannotCheck, {.what = "a wheel is of a version that this program does not know",
                                           .where = where_,
                                           .expected = "Wheel-Version: 1.x",
                                           .got = SafePath::printable(*version)});
  }

  void check_metadata() const {
    if (!is_utf8(metadata_)) refuse("its METADATA is not UTF-8");
    const std::optional<std::string> name = metadata_field("Name"), version = metadata_field("Version");
    if (!name || !version || !is_own(*name, *version))
      refuse("its METADATA names another project or version: " +
             SafePath::printable(name.value_or("none") + " " + version.value_or("none")));
  }

  // Every file must have a digest in RECORD, every row a file, and every file a place.
  void assign_files() {
    const std::string record = dist_info_ + "/RECORD";
    const ZipMember* const listed = find(record);
    if (listed == nullptr) refuse("it has no RECORD");
    std::map<std::string, WheelRecordRow> rows =
        parse_wheel_record(zip_.extract_text(*listed, kMaxRecord), zip_.members().size() + 1000, where_);
    std::set<std::pair<Scheme, std::string>> places;
    for (const ZipMember& member : zip_.members()) {
      const auto row = rows.find(member.name);
      if (member.name == record || member.name == record + ".jws" || member.name == record + ".p7s") {
        if (row != rows.end()) rows.erase(row);
        continue;
      }
      if (row == rows.end() || !row->second.sha256)
        refuse("a file is not listed in RECORD with a digest: " + SafePath::printable(member.name));
      if (row->second.size.value_or(member.size) != member.size)
        refuse("RECORD says another size: " + SafePath::printable(member.name));
      WheelFile file = place(member);
      file.sha256 = *row->second.sha256;
      rows.erase(row);
      if (!places.emplace(file.scheme, file.path).second)
        refuse("two files have one place: " + SafePath::printable(file.path));
      check_startup(file);
      if (file.scheme == Scheme::Scripts) {
        refuse_interpreter_name(file.path);
        file.executable = true;
        file.python_script = zip_.start_of(member, 8) == "#!python";
      }
      files_.push_back(std::move(file));
    }
    if (!rows.empty()) refuse("RECORD lists a file that is not there: " + SafePath::printable(rows.begin()->first));
  }

  // Nothing may run by itself when Python starts; see wheel_startup.hpp.
  void check_startup(const WheelFile& file) {
    const std::string folded = case_folded(file.path);
    if (file.scheme == Scheme::Data && ("/" + folded).find("/site-packages/") != std::string::npos)
      refuse("its .data puts a file into site-packages by another way: " + SafePath::printable(file.path));
    if (file.scheme != Scheme::SitePackages) return;
    if (is_startup_module(file.path)) refuse("it runs code when Python starts: " + SafePath::printable(file.path));
    if (!folded.ends_with(".pth") || folded.find('/') != std::string::npos) return;
    if (const std::string fault = fault_of_pth(zip_.extract_text(file.member, kMaxText)); !fault.empty())
      throw Error(ErrorCode::Format, {.what = "a wheel is not acceptable: " + fault,
                                      .where = where_ + ", " + SafePath::printable(file.path),
                                      .next = "leave this wheel out, or use a version of it without that file"});
  }

  // A wheel must not decide what `python3` is.
  void refuse_interpreter_name(std::string_view script) const {
    std::string name = case_folded(script);
    if (name.ends_with(".exe")) name.resize(name.size() - 4);
    if (!name.starts_with("python") || name.find_first_not_of("0123456789.w", 6) != name.npos) return;
    throw Error(ErrorCode::Conflict, {.what = "a wheel brings a program that is named as the interpreter",
                                      .where = where_,
                                      .got = SafePath::printable(script),
                                      .next = "leave this wheel out of the bundle"});
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
      refuse_interpreter_name(point.script);
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
