// SPDX-License-Identifier: Apache-2.0
// Names are compared without case, ";1" and what FAT and ISO 9660 cut off; see changed_names.hpp.
#include "bundle/payload/changed_names.hpp"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <vector>

#include "bundle/payload/left_by_systems.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostNames = 10'000;  // of a folder that are looked at
constexpr const char* kMount =
    "mount the disc with its own names (Rock Ridge or Joliet; `mount -o map=normal`), or give the files their names "
    "back: ";
constexpr std::string_view kArchives[] = {".zip", ".tar", ".tgz", ".gz", ".zst", ".xz", ".7z", ".rar"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

// Without case and ";1".
std::string plain(const std::string& name) {
  std::string text = lower(name);
  const std::size_t mark = text.rfind(';');
  if (mark != text.npos && text.find_first_not_of("0123456789", mark + 1) == text.npos) text.resize(mark);
  return text;
}

std::string letters_of(std::string_view text) {
  std::string out;
  for (const char c : text)
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  return out;
}

// "env-1.chu" or "env-20~1.chu" of "env-2026.1-1.chunks"; both plain. A line to paste will have it, so it holds nothing
// that a shell reads otherwise, and no system makes other characters of a bundle's names.
bool is_short_form(const std::string& own, const std::string& name) {
  if (own.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-~") != own.npos) return false;
  const std::size_t dot = own.rfind('.'), long_dot = name.rfind('.');
  if (dot == own.npos || long_dot == name.npos || dot > 8 || own.size() - dot - 1 > 3) return false;
  if (name.substr(long_dot + 1, 3) != own.substr(dot + 1)) return false;
  std::string begin = own.substr(0, dot);
  const std::size_t tilde = begin.find('~');
  if (tilde == begin.npos && begin.size() < 8) return begin == name.substr(0, long_dot);
  begin = letters_of(std::string_view(begin).substr(0, tilde));
  return !begin.empty() && letters_of(std::string_view(name).substr(0, long_dot)).starts_with(begin);
}

// A line to paste holds it in quotation marks.
bool is_copy_of(const std::string& own, const std::string& name) {
  return own.find('\'') == own.npos && SafePath::printable(own) == own && original_name(own) == name;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator there(folder, error); !error && there != fs::directory_iterator(); there.increment(error))
    if (found.size() < kMostNames) found.push_back(there->path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string name_of(const fs::path& path) {
  return SafePath::printable(path.filename().string());
}

bool is_archive(const fs::path& file) {
  const std::string ending = lower(file.extension().string());
  return std::find(std::begin(kArchives), std::end(kArchives), ending) != std::end(kArchives);
}

bool has_seal(const fs::path& folder) {
  const std::vector<fs::path> there = entries_of(folder);
  return std::any_of(there.begin(), there.end(), [](const fs::path& file) {
    return file.extension() == ".seal" && !is_left_by_system(file.filename().string());
  });
}

// A seal under a changed name.
std::optional<ChangedName> changed_seal(const fs::path& file) {
  const std::string its = plain(file.filename().string());
  if (is_left_by_system(its)) return std::nullopt;
  const bool cut = its.ends_with(".sea");
  if (!cut && !its.ends_with(".seal")) return std::nullopt;
  return ChangedName{name_of(file) + (cut ? ": the names are cut to eight letters and three here"
                                          : ": the names are in upper case here, or with what discs add to them"),
                     kMount + std::string("NAME-VERSION.seal and so on")};
}

std::optional<ChangedName> instead_of_file(const fs::path& file) {
  if (const auto seal = changed_seal(file)) return seal;
  const std::string ending = plain(file.extension().string());
  if (is_archive(file))
    return ChangedName{"an archive: " + name_of(file), "unpack it, and name the folder in which the seal is then"};
  if (ending == ".iso")
    return ChangedName{"a disc's image: " + name_of(file), "mount it (mount -o loop,ro), and name the folder"};
  if (ending == ".chunks" || ending.starts_with(".vol") || ending.starts_with(".rec"))
    return ChangedName{"one file of a bundle: " + name_of(file),
                       "name its folder: " + SafePath::printable(fs::absolute(file).parent_path().string())};
  return std::nullopt;
}

}  // namespace

std::optional<ChangedName> changed_name(const fs::path& folder, const std::string& name) {
  const std::string wanted = lower(name);
  for (const fs::path& file : entries_of(folder)) {
    if (is_left_by_system(file.filename().string())) continue;
    const std::string own = file.filename().string(), its = plain(own);
    const bool same = its == wanted;
    if (is_copy_of(own, name))
      return ChangedName{own + ", which is the name of a second copy",
                         "give it its name back: mv '" + own + "' '" + name + "'"};
    if (own == name || (!same && !is_short_form(its, wanted))) continue;
    const std::string shown = SafePath::printable(own);
    return ChangedName{shown + (same ? ", which is this name in another case, or with what discs add to it"
                                     : ", which may be this name, cut to eight letters and three"),
                       kMount + ("mv '" + shown + "' '" + name + "'")};
  }
  return std::nullopt;
}

std::optional<ChangedName> instead_of_bundle(const fs::path& folder_or_file) {
  std::error_code error;
  if (fs::is_regular_file(folder_or_file, error)) return instead_of_file(folder_or_file);
  const std::vector<fs::path> there = entries_of(folder_or_file);
  for (const fs::path& file : there)
    if (const auto seal = changed_seal(file)) return seal;
  for (const fs::path& folder : there)
    if (fs::is_directory(folder, error) && has_seal(folder))
      return ChangedName{"a folder with a seal: " + name_of(folder),
                         "name that folder: " + SafePath::printable(folder.string())};
  for (const fs::path& file : there)
    if (fs::is_regular_file(file, error) && is_archive(file)) return instead_of_file(file);
  return std::nullopt;
}

}  // namespace sealift::bundle
