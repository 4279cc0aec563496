// SPDX-License-Identifier: Apache-2.0
// A wheel's directory, a tree's tar, or nothing but a digest; see installed_content.hpp.
#include "packager/owners/installed_content.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "packager/files/known_chunks.hpp"
#include "packager/libraries/carried_runtime.hpp"
#include "packager/owners/path_extension.hpp"
#include "packager/resolve/metadata_headers.hpp"
#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kBlock = 4096;  // what a file takes at least on the usual file systems

// Compares the files of a tree with the digests that it says of them: installers take them as they are.
class TreeDigests {
 public:
  explicit TreeDigests(const fs::path& file) : file_(file) {}

  void begin(const bundle::TarMember& member) {
    end();
    path_ = member.path;
    said_ = bundle::digest_of_comment(member.comment);
  }
  void take(bundle::ByteView piece) {
    if (said_) hasher_.update(piece);
  }
  void end() {
    if (!said_) return;
    if (const bundle::Digest digest = hasher_.finish(); digest != *said_)
      throw Error(ErrorCode::Digest, {.what = "a tree's tar says another digest of a file than it has",
                                      .where = file_.string() + ", " + path_,
                                      .expected = "sha256 " + said_->hex(),
                                      .got = "sha256 " + digest.hex(),
                                      .next = "remove it and run sealift-pack lock again"});
    said_.reset();
  }

 private:
  const fs::path& file_;
  std::string path_;
  std::optional<bundle::Digest> said_;
  bundle::Hasher hasher_;
};

void require_locked_tree(const Content& content, const fs::path& file) {
  if (const bundle::Digest digest = digest_of_file(file); digest != content.sha256)
    throw Error(ErrorCode::Digest, {.what = content.name + " in the cache is damaged",
                                    .where = file.string(),
                                    .expected = "sha256 " + content.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "remove it and run sealift-pack lock again"});
}

// With `compare`, each file's bytes are held to the digest that the tar says of it.
Installed read_tree(const fs::path& file, bool carries_runtime, bool compare) {
  Installed installed;
  bool has_runtime = false;
  TreeDigests digests(file);
  bundle::TarReader reader({.begin =
                                [&](const bundle::TarMember& member) {
                                  if (compare) digests.begin(member);
                                  has_runtime = has_runtime || is_runtime_file(member.path);
                                  if (member.type == bundle::TarType::Folder)
                                    installed.folder(member.path);
                                  else
                                    installed.file(member.path, member.size);
                                },
                            .data = [&](bundle::ByteView piece) { digests.take(piece); }},
                           file.string());
  bundle::FileSource source(file);
  for (std::uint64_t offset = 0; offset < source.size();) {
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    reader.feed(piece);
    offset += piece.size();
  }
  reader.finish();
  digests.end();
  if (has_runtime != carries_runtime)
    throw Error(ErrorCode::Format, {.what = "lock and interpreter do not agree whether glibc is carried",
                                    .where = file.string(),
                                    .expected = carries_runtime ? "a glibc" : "no glibc",
                                    .next = "run sealift-pack lock again"});
  return installed;
}

// The digests of a tree are compared once for each SHA-256. From then on it is read for its names alone, and what is
// written of it is held to its SHA-256 then; where that reading meets damage, all is looked at again.
Installed install_tree(const Content& content, const fs::path& file, bool carries_runtime, const KnownChunks& known) {
  if (known.is_compared_tree(content.sha256)) try {
      return read_tree(file, carries_runtime, false);
    } catch (const Error&) {
      require_locked_tree(content, file);
      throw;
    }
  require_locked_tree(content, file);
  Installed installed = read_tree(file, carries_runtime, true);
  known.write_compared_tree(content.sha256);
  return installed;
}

Installed install_program(const Content& content, const fs::path& file) {
  if (const bundle::Digest digest = digest_of_file(file); digest != content.sha256)
    throw Error(ErrorCode::Digest, {.what = "a program changed after it was locked",
                                    .where = file.string(),
                                    .expected = "sha256 " + content.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "run sealift-pack lock again"});
  Installed installed;
  installed.file(content.into, content.size);
  return installed;
}

// How many files of the wheel lie directly in each folder of site-packages.
std::map<std::string_view, std::size_t> files_in_folders(const bundle::Wheel& wheel) {
  std::map<std::string_view, std::size_t> counts;
  for (const bundle::WheelFile& file : wheel.files())
    if (file.scheme == bundle::Scheme::SitePackages)
      ++counts[std::string_view(file.path).substr(0, std::min(file.path.rfind('/'), file.path.size()))];
  return counts;
}

// Looks into the __init__.py of folders that have no other file: of packages with code nobody need be asked.
bool extends_path(bundle::Wheel& wheel, const bundle::WheelFile& file,
                  const std::map<std::string_view, std::size_t>& counts) {
  constexpr std::string_view kName = "/__init__.py";
  const std::string_view path = file.path;
  if (file.scheme != bundle::Scheme::SitePackages || !path.ends_with(kName) || file.member.size == 0 ||
      file.member.size > kMaxPathExtension || counts.at(path.substr(0, path.size() - kName.size())) != 1)
    return false;
  return only_extends_path(wheel.start_of(file, kMaxPathExtension));
}

// What two wheels must have in common for their programs of one name to be the same.
bundle::Digest made_from(const std::string& text) {
  return bundle::sha256(bundle::as_bytes(text));
}

std::set<std::string> needs_of(const bundle::Wheel& wheel) {
  std::set<std::string> needs;
  for (const std::string& requirement : MetadataHeaders(wheel.metadata()).all("Requires-Dist")) {
    constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const std::string name = requirement.substr(0, requirement.find_first_not_of(kNameCharacters));
    if (!name.empty()) needs.insert(bundle::normalized_project_name(name));
  }
  return needs;
}

}  // namespace

void Installed::folder(const std::string& path) {
  if (folders.insert(path).second) size += kBlock;
}

void Installed::file(File one, std::uint64_t bytes) {
  const std::string& path = one.place;
  for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
    folder(path.substr(0, slash));
  size += (bytes + kBlock - 1) / kBlock * kBlock;
  files.push_back(std::move(one));
}

Installed install_wheel(const Content& content, bundle::ByteSource& source, const Lock& lock) {
  const std::string site_packages = bundle::site_packages_of(lock.python);
  bundle::Wheel wheel(source, content.name, content.startup_files);
  const std::map<std::string_view, std::size_t> counts = files_in_folders(wheel);
  Installed installed;
  installed.startup = wheel.startup();
  installed.may_run = wheel.allowed_startup_files();
  installed.needs = needs_of(wheel);
  installed.left_out_bytecode = wheel.left_out_bytecode();
  installed.misdescribed = wheel.idle_rows();
  for (const bundle::WheelFile& member : wheel.files()) {
    installed.misdescribed += member.misdescribed ? 1 : 0;
    installed.file({.place = bundle::installed_path(member.scheme, member.path, wheel.dist_info(), site_packages),
                    .packaged = member.scheme == bundle::Scheme::SitePackages ? member.path : "",
                    .empty = member.member.size == 0,
                    .sha256 = member.python_script ? made_from("a script of " + member.sha256.hex()) : member.sha256,
                    .yields = extends_path(wheel, member, counts)},
                   member.member.size);
  }
  for (const bundle::EntryPoint& point : wheel.entry_points())
    installed.file({.place = "bin/" + point.script,
                    .sha256 = made_from("an entry point to " + point.module + ":" + point.function)},
                   1);
  const std::string info = site_packages + "/" + wheel.dist_info();
  installed.file(info + "/RECORD", wheel.files().size() * 160);
  if (std::none_of(wheel.files().begin(), wheel.files().end(),
                   [&](const bundle::WheelFile& member) { return member.path == wheel.dist_info() + "/INSTALLER"; }))
    installed.file(info + "/INSTALLER", 1);
  return installed;
}

Installed install_file(const Content& content) {
  Installed installed;
  if (content.is_installed()) installed.file(content.into, content.size);
  return installed;
}

Installed install_content(const Content& content, const Cache& cache, const Lock& lock) {
  const fs::path file = file_of(content, cache);
  switch (content.kind) {
    case Content::Kind::Interpreter:
      return install_tree(content, file, lock.runtime.has_value(), KnownChunks(cache));
    case Content::Kind::Tree:
      return install_tree(content, file, false, KnownChunks(cache));
    case Content::Kind::Wheel: {
      bundle::FileSource source(file);
      return install_wheel(content, source, lock);
    }
    case Content::Kind::Program:
      return install_program(content, file);
    case Content::Kind::File:
      break;
  }
  return install_file(content);
}

}  // namespace sealift::packager
