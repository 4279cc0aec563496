// SPDX-License-Identifier: Apache-2.0
// Reads pylock.toml; see pylock.hpp.
#include "packager/resolve/pylock.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/host/url.hpp"
#include "packager/resolve/wheel_tags.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

fs::path absolute_path(const fs::path& where, const std::string& text) {
  return fs::absolute(where / text).lexically_normal();
}

// A file of a package: a wheel, an sdist, or an archive that somebody named directly.
struct PackageFile {
  std::string name;
  std::string url;
  Digest sha256;
  std::uint64_t size = 0;
};

PackageFile read_file(TomlTable& table, const fs::path& where) {
  table.ignore_others();
  PackageFile file;
  file.url = table.has("path") ? file_url(absolute_path(where, table.string("path"))) : table.string("url");
  if (table.has("name")) {
    file.name = table.string("name");
  } else {
    const std::optional<Url> url = parse_url(file.url);
    if (!url) table.refuse("url", "this is not a URL", {}, without_credentials(file.url));
    file.name = url->file_name();
  }
  TomlTable hashes = table.table("hashes");
  const bool has_other = !hashes.has("sha256") && !hashes.keys().empty();  // such as an MD5: pin_unpinned has the rest
  const std::optional<Digest> digest = has_other ? Digest() : Digest::from_hex(hashes.string("sha256"));
  if (!digest) hashes.refuse("sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits");
  file.sha256 = *digest;
  file.size = table.integer_or("size", 0);
  return file;
}

TomlValue parse_pylock(std::string_view pylock) {
  const TomlValue document = parse_toml(pylock, "pylock.toml", ErrorCode::Format);
  TomlTable root(document, "pylock.toml", ErrorCode::Format);
  if (const std::string version = root.string("lock-version"); !version.starts_with("1."))
    throw Error(ErrorCode::CannotCheck, {.what = "the pylock is of a version that this program does not know",
                                         .where = "pylock.toml",
                                         .expected = "1.0",
                                         .got = version,
                                         .next = "use a uv that writes lock-version 1"});
  return document;
}

// One package of the file.
struct Package {
  SourcePackage source;  // only name and version are set unless `has_source`
  std::vector<PackageFile> wheels;
  bool has_source = false;
  bool is_named = false;  // by its address, in a requirement: no index names archives, repositories or folders
};

Package read_package(TomlTable& table, const fs::path& where) {
  Package package;
  SourcePackage& source = package.source;
  source.name = bundle::normalized_project_name(table.string("name"));
  source.version = table.string_or("version", "");
  for (TomlTable& item : table.tables("wheels")) package.wheels.push_back(read_file(item, where));
  for (const char* key : {"sdist", "archive"}) {
    if (!table.has(key)) continue;
    TomlTable item = table.table(key);
    const PackageFile file = read_file(item, where);
    package.is_named = package.is_named || std::string_view(key) == "archive";
    if (file.name.ends_with(".whl")) {
      package.wheels.push_back(file);
      continue;
    }
    source.url = file.url;
    source.sha256 = file.sha256;
    source.subdirectory = item.string_or("subdirectory", "");
    package.has_source = true;
  }
  if (table.has("vcs")) {
    TomlTable item = table.table("vcs");
    if (const std::string type = item.string("type"); type != "git")
      item.refuse("type", "sources of this kind cannot be fetched", "git", type);
    package.is_named = true;
    source.kind = SourceKind::Git;
    source.url = item.has("path") ? absolute_path(where, item.string("path")).string() : item.string("url");
    source.commit = item.string("commit-id");
    if (source.commit.size() < 40 || source.commit.find_first_not_of("0123456789abcdef") != source.commit.npos)
      item.refuse("commit-id", "this is not a commit", "40 hexadecimal digits", source.commit);
    source.subdirectory = item.string_or("subdirectory", "");
    package.has_source = true;
  }
  if (table.has("directory")) {
    TomlTable item = table.table("directory");
    package.is_named = true;
    source.kind = SourceKind::Folder;
    source.folder = absolute_path(where, item.string("path"));
    source.subdirectory = item.string_or("subdirectory", "");
    package.has_source = true;
  }
  if (!source.subdirectory.empty()) bundle::SafePath::parse(source.subdirectory, "pylock.toml");
  return package;
}

// The best of a package's wheels; sets `forbidden` when a wheel fits but is not allowed.
std::optional<LockedWheel> best_wheel(const Package& package, std::string_view python, const bundle::Target& target,
                                      const std::set<Digest>* allowed, bool& forbidden) {
  std::optional<std::pair<WheelFit, LockedWheel>> best;
  for (const PackageFile& file : package.wheels) {
    const std::optional<WheelFit> fit = fit_wheel(file.name, python, target);
    if (!fit) continue;
    if (allowed != nullptr && !allowed->contains(file.sha256)) {
      forbidden = true;
      continue;
    }
    if (best && std::tie(best->first.rank, fit->build, best->second.file_name) <=
                    std::tie(fit->rank, best->first.build, file.name))
      continue;
    // A wheel that was given by its URL alone has its version only in its name.
    const std::string version =
        package.source.version.empty() ? bundle::parse_wheel_name(file.name)->version : package.source.version;
    best.emplace(*fit, LockedWheel{.name = package.source.name,
                                   .version = version,
                                   .file_name = file.name,
                                   .url = file.url,
                                   .sha256 = file.sha256,
                                   .size = file.size});
  }
  return best ? std::optional(std::move(best->second)) : std::nullopt;
}

// The address of a package that lies beside the lock, as PDM writes it for files; no index has that one. Empty for
// others.
std::string local_file_of(const Package& package, std::string_view python, const bundle::Target& target) {
  const auto is_local = [](const std::string& url) { return url.starts_with("file:"); };
  if (package.wheels.empty()) return is_local(package.source.url) ? package.source.url : "";
  if (!std::all_of(package.wheels.begin(), package.wheels.end(),
                   [&](const PackageFile& wheel) { return is_local(wheel.url); }))
    return {};
  bool forbidden = false;
  const std::optional<LockedWheel> best = best_wheel(package, python, target, nullptr, forbidden);
  return best ? best->url : is_local(package.source.url) ? package.source.url : "";
}

// For the message: a wheel that only its glibc keeps from fitting.
std::string too_new(const Package& package, std::string_view python, const bundle::Target& target) {
  for (const PackageFile& file : package.wheels)
    if (const std::optional<bundle::GlibcVersion> wanted = glibc_wanted(file.name, python, target);
        wanted && *wanted > target.glibc)
      return fmt::format(" ({} needs glibc {})", file.name, wanted->text());
  return {};
}

// A marker without `"NAME" in dependency_groups` and `"NAME" in extras`, in place of which stands something that uv
// finds true or false on every machine.
std::string with_uses(std::string marker, std::string_view of_what, const std::set<std::string>& wanted) {
  for (const char quote : {'"', '\''})
    for (const std::string& middle : {std::string(1, quote) + " in ", std::string(1, quote) + " not in "})
      for (std::size_t at = marker.find(middle + std::string(of_what)); at != marker.npos;
           at = marker.find(middle + std::string(of_what), at + 1)) {
        const std::size_t begin = at == 0 ? marker.npos : marker.rfind(quote, at - 1);
        if (begin == marker.npos) break;
        const bool in = wanted.contains(bundle::normalized_project_name(marker.substr(begin + 1, at - begin - 1)));
        const bool holds = in != (middle.find(" not ") != middle.npos);
        marker.replace(begin, at + middle.size() + of_what.size() - begin,
                       holds ? "python_version >= '0'" : "python_version < '0'");
        at = begin;
      }
  return marker;
}

// What is wanted of a pylock's groups or extras, normalized.
std::set<std::string> uses_of(TomlTable& root, const std::string& key, const std::vector<std::string>& asked,
                              const std::vector<std::string>& by_default) {
  std::set<std::string> known, wanted;
  for (const std::string& name : root.strings(key)) known.insert(bundle::normalized_project_name(name));
  for (const std::string& name : by_default) wanted.insert(bundle::normalized_project_name(name));
  for (const std::string& name : asked) {
    const std::string plain = bundle::normalized_project_name(name);
    if (!known.contains(plain) && !wanted.contains(plain))
      throw Error(ErrorCode::Usage, {.what = "the lock does not have what the job wants of it",
                                     .where = "pylock.toml, " + key,
                                     .expected = fmt::format("one of: {}", fmt::join(known, ", ")),
                                     .got = name,
                                     .next = "correct extras and groups in [python] of the job"});
    wanted.insert(plain);
  }
  return wanted;
}

}  // namespace

std::vector<std::string> indexes_of_lock(std::string_view lock) {
  const TomlValue document = parse_toml(lock, "lock", ErrorCode::Format);
  TomlTable root(document, "lock", ErrorCode::Format);
  std::vector<std::string> indexes;
  std::map<std::string, std::size_t> packages;  // of each index
  std::size_t all = 0;
  const auto add = [&](const std::string& index) {
    if (!parse_url(index)) return;
    if (packages[index]++ == 0) indexes.push_back(index);
    ++all;
  };
  for (const char* key : {"package", "packages"})
    for (TomlTable& package : root.tables(key)) {
      if (package.is_table("source")) add(package.table("source").string_or("registry", ""));
      add(package.string_or("index", ""));
    }
  // What most come from is the default one, for which the job, or who packs, may name a mirror.
  std::erase_if(indexes, [&](const std::string& index) { return 2 * packages[index] > all; });
  return indexes;
}

PythonChoice choose_packages(std::string_view pylock, const fs::path& where, std::string_view python,
                             const bundle::Target& target, const RequirementHashes& allowed) {
  const TomlValue document = parse_pylock(pylock);
  TomlTable root(document, "pylock.toml", ErrorCode::Format);
  PythonChoice choice;
  std::vector<std::string> no_fit, not_allowed;
  std::set<std::string> names;
  for (TomlTable& table : root.tables("packages")) {
    // `marker` needs no evaluation: uv resolved for this very target, so what does not apply is not listed.
    const Package package = read_package(table, where);
    const SourcePackage& source = package.source;
    if (!names.insert(source.name).second)
      throw Error(ErrorCode::Conflict, {.what = "a package is listed twice in the resolution",
                                        .where = "pylock.toml",
                                        .got = source.name,
                                        .next = "require one version of it"});
    const auto found = allowed.find(source.name);
    const std::set<Digest>* digests = found == allowed.end() ? nullptr : &found->second;
    bool forbidden = false;
    const auto note_local = [&](const std::string& address) {
      if (const auto url = parse_url(address); !package.is_named && url && url->scheme == "file")
        choice.local.push_back(address);
    };
    if (std::optional<LockedWheel> wheel = best_wheel(package, python, target, digests, forbidden)) {
      note_local(wheel->url);
      choice.wheels.push_back(std::move(*wheel));
    } else if (package.has_source && (digests == nullptr || (source.sha256 && digests->contains(*source.sha256)))) {
      note_local(source.url);
      choice.sources.push_back(source);
    } else {
      (forbidden || package.has_source ? not_allowed : no_fit)
          .push_back(source.title() + too_new(package, python, target));
    }
  }
  if (!not_allowed.empty())
    throw Error(ErrorCode::Digest,
                {.what = "the index offers no file with the hashes that the requirements demand",
                 .expected = "a file for the target with one of the hashes in the requirements, for each package",
                 .got = fmt::format("{}", fmt::join(not_allowed, ", ")),
                 .next = "find out who changed: the index, or the requirements; then correct these"});
  if (!no_fit.empty())
    throw Error(ErrorCode::Platform,
                {.what = "some packages have no wheel for the target, and no source to build one from",
                 .expected = fmt::format("CPython {} on {}, glibc {}", python, target.arch, target.glibc.text()),
                 .got = fmt::format("{}", fmt::join(no_fit, ", ")),
                 .next = "require versions that have one; where a newer glibc is all that is asked for, this machine's "
                         "can be carried: [target] runtime = \"carried\""});
  std::sort(choice.wheels.begin(), choice.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file_name < b.file_name; });
  std::sort(choice.sources.begin(), choice.sources.end(),
            [](const SourcePackage& a, const SourcePackage& b) { return a.name < b.name; });
  return choice;
}

std::vector<std::string> pylock_as_requirements(std::string_view pylock, const fs::path& where, std::string_view python,
                                                const bundle::Target& target, const std::vector<std::string>& extras,
                                                const std::vector<std::string>& groups) {
  const TomlValue document = parse_pylock(pylock);
  TomlTable root(document, "pylock.toml", ErrorCode::Format);
  const std::set<std::string> of_extras = uses_of(root, "extras", extras, {});
  const std::set<std::string> of_groups = uses_of(root, "dependency-groups", groups, root.strings("default-groups"));
  std::vector<std::string> lines;
  for (TomlTable& table : root.tables("packages")) {
    const std::string marker =
        with_uses(with_uses(table.string_or("marker", ""), "dependency_groups", of_groups), "extras", of_extras);
    const Package package = read_package(table, where);
    const SourcePackage& source = package.source;
    std::string line = source.name;
    if (source.kind == SourceKind::Folder)
      line += " @ " + file_url(source.subdirectory.empty() ? source.folder : source.folder / source.subdirectory);
    else if (source.kind == SourceKind::Git)
      line += " @ git+" + source.url + "@" + source.commit +
              (source.subdirectory.empty() ? "" : "#subdirectory=" + source.subdirectory);
    else if (table.has("archive"))
      line += " @ " + (package.has_source ? source.url : package.wheels.back().url) +
              (source.subdirectory.empty() ? "" : "#subdirectory=" + source.subdirectory);
    else if (const std::string local = local_file_of(package, python, target); !local.empty())
      line += " @ " + local;
    else if (!source.version.empty())
      line += "==" + source.version;
    else
      table.refuse("version", "a package of the pylock has no version", "a version, an archive, a vcs or a directory");
    if (!marker.empty()) line += " ; " + marker;
    if (line.find_first_of("\n\r") != line.npos) table.refuse("name", "a value of the pylock holds a line break");
    for (const PackageFile& wheel : package.wheels)
      if (wheel.sha256 != Digest()) line += " --hash=sha256:" + wheel.sha256.hex();
    if (source.sha256 && *source.sha256 != Digest()) line += " --hash=sha256:" + source.sha256->hex();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace sealift::packager
