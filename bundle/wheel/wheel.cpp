// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/wheel/wheel.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "bundle/core/text_parts.hpp"
#include "bundle/core/unicode.hpp"
#include "bundle/core/wide_digest.hpp"
#include "bundle/wheel/wheel_record.hpp"
#include "bundle/wheel/wheel_startup.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/wheel_places.hpp"

namespace sealift::bundle {
namespace {

constexpr std::uint64_t kMaxText = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxRecord = std::uint64_t{64} << 20;

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw Error(ErrorCode::Format, {.what = "a wheel is not acceptable: " + why, .where = where});
}

[[noreturn]] void refuse_bytes(const std::string& where, const WheelFile& file, std::string expected, std::string got) {
  throw Error(ErrorCode::Digest, {.what = "a file of a wheel differs from its RECORD",
                                  .where = where + ", " + SafePath::printable(file.member.name),
                                  .expected = std::move(expected),
                                  .got = std::move(got),
                                  .next = "this wheel is damaged at its source; use another build of it"});
}

bool is_dotted_name(std::string_view text) {
  if (text.empty() || text.front() == '.' || text.back() == '.') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

// The value of "Field: value" before the first empty line. Field names are compared without case, as in mail.
std::optional<std::string> header_field(std::string_view text, std::string_view field, const std::string& where) {
  std::optional<std::string> value;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty() || line == "\r") break;
    const std::size_t colon = line.find(':');
    if (colon == line.npos || case_folded(line.substr(0, colon)) != case_folded(field)) continue;
    if (value) refuse(where, "it says " + std::string(field) + " twice");
    value = trimmed(line.substr(colon + 1));
  }
  return value;
}

// Every byte is a character of Latin-1, so nothing is lost; METADATA itself is installed as it is.
std::string utf8_of_latin1(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) out.push_back(static_cast<char>(0xc0 | byte >> 6));
    out.push_back(byte < 0x80 ? c : static_cast<char>(0x80 | (byte & 0x3f)));
  }
  return out;
}

}  // namespace

class Wheel::Parser {
 public:
  Parser(Wheel& wheel, const std::set<Digest>& allowed)
      : wheel_(wheel),
        allowed_(allowed),
        zip_(wheel.zip_),
        where_(wheel.where_),
        name_(wheel.name_),
        dist_info_(wheel.dist_info_),
        metadata_(wheel.metadata_),
        files_(wheel.files_),
        entry_points_(wheel.entry_points_) {}

  void parse(std::string_view file_name) {
    const std::optional<WheelName> parsed = parse_wheel_name(file_name);
    if (!parsed) refuse("its file name is not NAME-VERSION-PYTHON-ABI-PLATFORM.whl");
    name_ = *parsed;
    find_dist_info();
    read_wheel_file();
    metadata_ = text_of(dist_info_ + "/METADATA");
    if (!is_utf8(metadata_)) metadata_ = utf8_of_latin1(metadata_);
    check_metadata();
    assign_files();
    if (const ZipMember* points = find(dist_info_ + "/entry_points.txt"))
      read_entry_points(zip_.extract_text(*points, kMaxText));
    check_completions();
  }

 private:
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
    if (dist_info_.empty() || !is_own_folder(dist_info_, ".dist-info"))
      refuse("it has no .dist-info folder of its own name and version");
  }

  // NAME-VERSION and the ending; a publisher's two tools may spell the name of two folders differently.
  bool is_own_folder(std::string_view folder, std::string_view ending) const {
    if (!folder.ends_with(ending)) return false;
    folder.remove_suffix(ending.size());
    const std::size_t dash = std::min(folder.find('-'), folder.size());
    return is_own(folder.substr(0, dash), folder.substr(std::min(dash + 1, folder.size())));
  }

  // Prebuilt wheels of flash-attn and others say in the file's name alone for which CUDA they are: 2.5.8+cu122torch2.3.
  bool is_own(std::string_view project, std::string_view version) const {
    if (normalized_project_name(project) != normalized_project_name(name_.name)) return false;
    const std::string own = normalized_version(version);
    return own == normalized_version(name_.version) ||
           own == normalized_version(std::string_view(name_.version).substr(0, name_.version.find('+')));
  }

  void read_wheel_file() {
    const std::optional<std::string> version = header_field(text_of(dist_info_ + "/WHEEL"), "Wheel-Version", where_);
    if (!version) refuse("its WHEEL file names no version");
    if (!version->starts_with("1."))
      throw Error(ErrorCode::CannotCheck, {.what = "a wheel is of a version that this program does not know",
                                           .where = where_,
                                           .expected = "Wheel-Version: 1.x",
                                           .got = SafePath::printable(*version)});
  }

  void check_metadata() const {
    const std::optional<std::string> name = wheel_.metadata_field("Name"), version = wheel_.metadata_field("Version");
    if (!name || !version || !is_own(*name, *version))
      refuse("its METADATA names another project or version: " +
             SafePath::printable(name.value_or("none") + " " + version.value_or("none")));
  }

  // Gives every file a digest, RECORD's or its own bytes', and a place of its own. That RECORD lists a file which is
  // not there, or lacks one which is, is no fault of the bytes: the lock pins those of the whole wheel.
  void assign_files() {
    const std::string record = dist_info_ + "/RECORD";
    const ZipMember* const listed = find(record);
    if (listed == nullptr) refuse("it has no RECORD");
    std::map<std::string, WheelRecordRow> rows =
        parse_wheel_record(zip_.extract_text(*listed, kMaxRecord), zip_.members().size() + 1000, where_);
    std::set<std::pair<Scheme, std::string>> places;
    std::size_t other_sizes = 0;
    for (const ZipMember& member : zip_.members()) {
      const auto row = rows.extract(member.name);
      if (member.name == record || member.name == record + ".jws" || member.name == record + ".p7s") continue;
      WheelFile file = place(member);
      const WheelRecordRow said = row ? row.mapped() : WheelRecordRow{};
      const bool right_size = said.size.value_or(member.size) == member.size;
      if (!right_size &&
          (++other_sizes > kMaxMisdescribed || (file.scheme == Scheme::SitePackages && is_pth(file.path))))
        refuse("RECORD says another size: " + SafePath::printable(member.name));
      if (said.sha256 && right_size)
        file.sha256 = *said.sha256;
      else
        describe(file, right_size ? said.wide : std::nullopt);
      if (!places.emplace(file.scheme, composed(file.path)).second)
        refuse("two files have one place: " + SafePath::printable(file.path));
      check_place(file.scheme, file.path, dist_info_, where_);
      if (file.scheme == Scheme::SitePackages && is_pth(file.path)) read_startup_file(file);
      if (file.scheme == Scheme::Scripts) {
        file.executable = true;
        file.python_script = zip_.start_of(member, 8) == "#!python";
      }
      files_.push_back(std::move(file));
    }
    wheel_.idle_rows_ = rows.size();
    check_startup_folders();
    leave_out_bytecode();
  }

  // The wheel as a whole has its published digest, so its bytes are what was published, and RECORD is at fault, unless
  // it has a digest of another kind. A row with the right size and another digest is refused, by whoever hashes the
  // file: no tool is known to make that mistake.
  void describe(WheelFile& file, const std::optional<Bytes>& wide) {
    Hasher hasher;
    std::optional<WideHasher> wide_hasher;
    if (wide) wide_hasher.emplace(wide->size());
    zip_.extract(file.member, [&](ByteView piece) {
      hasher.update(piece);
      if (wide_hasher) wide_hasher->update(piece);
    });
    file.sha256 = hasher.finish();
    file.misdescribed = !wide;
    if (!wide) return;
    if (const Bytes bytes = wide_hasher->finish(); bytes != *wide)
      refuse_bytes(where_, file, (wide->size() == kSha384Size ? "sha384 " : "sha512 ") + to_hex(*wide), to_hex(bytes));
  }

  // Refuses a .pth file that would run code, unless setuptools is known to write it or somebody allowed these bytes.
  void read_startup_file(const WheelFile& file) {
    const std::string text = zip_.extract_text(file.member, kMaxText);
    if (const Digest digest = sha256(as_bytes(text)); digest != file.sha256)  // nobody else may ever hash it
      refuse("RECORD has another digest of a start-up file: " + SafePath::printable(file.path));
    if (allowed_.contains(file.sha256)) {
      wheel_.allowed_startup_files_.push_back(file.path);
      return;
    }
    const StartupFile pth = read_pth(text);
    std::string fault = pth.fault;
    if (fault.empty() && pth.distutils && file.path != "distutils-precedence.pth")
      fault = "it runs code when Python starts: setuptools' line in a file of another name";
    if (!fault.empty())
      throw Error(ErrorCode::Format, {.what = "a wheel is not acceptable: " + fault,
                                      .where = where_ + ", " + SafePath::printable(file.path),
                                      .got = "sha256 " + file.sha256.hex(),
                                      .next = startup_remedy(file.sha256)});
    StartupEffects& effects = wheel_.startup_;
    effects.folders.insert(effects.folders.end(), pth.folders.begin(), pth.folders.end());
    effects.namespaces.insert(effects.namespaces.end(), pth.namespaces.begin(), pth.namespaces.end());
  }

  // What can be pasted into the job file once somebody has read that file.
  std::string startup_remedy(const Digest& file) const {
    const std::string package = normalized_project_name(name_.name);
    return "read that file; leave the wheel out, [python] excludes = [\"" + package +
           "\"], or, if it may run whenever Python starts, add to the job file:\n"
           "            [[startup]]\n            package = \"" +
           package + "\"\n            sha256 = \"" + file.hex() + "\"";
  }

  // A folder of the module path may hold what site-packages itself may.
  void check_startup_folders() const {
    for (const std::string& folder : wheel_.startup_.folders)
      for (const WheelFile& file : files_)
        if (file.scheme == Scheme::SitePackages && file.path.starts_with(folder + "/"))
          check_place(file.scheme, std::string_view(file.path).substr(folder.size() + 1), dist_info_, where_);
  }

  void leave_out_bytecode() {
    wheel_.left_out_bytecode_ = std::erase_if(files_, [](const WheelFile& file) {
      return file.scheme == Scheme::SitePackages && is_cached_bytecode(file.path);
    });
  }

  // A file NAME-VERSION.data/KEY/REST goes to the scheme KEY, every other file to site-packages.
  WheelFile place(const ZipMember& member) const {
    WheelFile file{.member = member, .path = member.name, .executable = member.executable};
    const std::size_t top = member.name.find('/');
    if (top == member.name.npos || !is_own_folder(std::string_view(member.name).substr(0, top), ".data")) return file;
    static const std::map<std::string, Scheme, std::less<>> kSchemes = {{"purelib", Scheme::SitePackages},
                                                                        {"platlib", Scheme::SitePackages},
                                                                        {"scripts", Scheme::Scripts},
                                                                        {"headers", Scheme::Headers},
                                                                        {"data", Scheme::Data}};
    const std::string_view rest = std::string_view(member.name).substr(top + 1);
    const std::size_t slash = rest.find('/');
    const auto scheme = kSchemes.find(rest.substr(0, slash));
    if (slash == std::string_view::npos || scheme == kSchemes.end())
      refuse("a file lies in an unknown part of .data: " + SafePath::printable(member.name));
    file.scheme = scheme->second;
    file.path = SafePath::parse_published(rest.substr(slash + 1), where_).text();
    if (file.scheme == Scheme::SitePackages && file.path.starts_with(dist_info_ + "/"))
      refuse("its .data adds to its metadata: " + SafePath::printable(member.name));
    return file;
  }

  // bash-completion 2.12 and newer sources the file that is named as a command from ../share of every folder of PATH,
  // when somebody types that command: only a wheel's own programs are its to complete.
  void check_completions() const {
    constexpr std::string_view kFolder = "share/bash-completion/";
    for (const WheelFile& file : files_) {
      if (file.scheme != Scheme::Data || !case_folded(file.path).starts_with(kFolder)) continue;
      std::string_view name = std::string_view(file.path).substr(file.path.rfind('/') + 1);
      if (name.ends_with(".bash")) name.remove_suffix(std::string_view(".bash").size());
      if (!is_own_program(name) && !(name.starts_with('_') && is_own_program(name.substr(1))))
        throw Error(ErrorCode::Conflict,
                    {.what = "a wheel is not acceptable: it completes a command that it does not bring, and a shell "
                             "would run that",
                     .where = where_,
                     .got = SafePath::printable(file.path),
                     .next = "use a version of it without that file, or leave this wheel out: [python] excludes = "
                             "[\"" +
                             normalized_project_name(name_.name) + "\"] where others ask for it"});
    }
  }

  bool is_own_program(std::string_view name) const {
    return std::any_of(entry_points_.begin(), entry_points_.end(),
                       [&](const EntryPoint& point) { return point.script == name; }) ||
           std::any_of(files_.begin(), files_.end(), [&](const WheelFile& file) {
             return (file.scheme == Scheme::Scripts && file.path == name) ||
                    (file.scheme == Scheme::Data && file.path == "bin/" + std::string(name));
           });
  }

  // Reads the sections console_scripts and gui_scripts: "script = module:function [extras]".
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
      check_place(Scheme::Scripts, point.script, dist_info_, where_);
      entry_points_.push_back(std::move(point));
    }
  }

  [[noreturn]] void refuse(const std::string& why) const { bundle::refuse(where_, why); }

  Wheel& wheel_;
  const std::set<Digest>& allowed_;
  ZipReader& zip_;
  const std::string& where_;
  WheelName& name_;
  std::string& dist_info_;
  std::string& metadata_;
  std::vector<WheelFile>& files_;
  std::vector<EntryPoint>& entry_points_;
};

Wheel::Wheel(ByteSource& source, std::string_view file_name, const std::set<Digest>& allowed)
    : zip_(source), where_(file_name) {
  Parser(*this, allowed).parse(file_name);
}

std::optional<std::string> Wheel::metadata_field(std::string_view field) const {
  return header_field(metadata_, field, where_);
}

void Wheel::extract(const WheelFile& file, const ByteSink& sink) {
  Hasher hasher;
  zip_.extract(file.member, [&](ByteView piece) {
    hasher.update(piece);
    sink(piece);
  });
  if (const Digest digest = hasher.finish(); digest != file.sha256)
    refuse_bytes(where_, file, "sha256 " + file.sha256.hex(), "sha256 " + digest.hex());
}

}  // namespace sealift::bundle
