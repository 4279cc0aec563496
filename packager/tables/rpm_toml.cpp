// SPDX-License-Identifier: Apache-2.0
// Reads and writes [rpm]; see rpm_toml.hpp. What is written here ends up in a configuration of dnf and as arguments of
// its solver, where globs, paths and groups mean something else, so few characters are allowed.
#include "packager/tables/rpm_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "packager/host/url.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxRpmKeys = std::uint64_t{1} << 20;

bool consists_of_rpm(std::string_view text, std::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || others.find(c) != others.npos;
  });
}

// A name, perhaps with version and release behind it; an epoch has a colon.
bool is_rpm_request(const std::string& text) {
  return consists_of_rpm(text, "._+~^:-") && consists_of_rpm(text.substr(0, 1), "_") && text.back() != '-';
}

RpmSigned checked_of(TomlTable& table) {
  const std::string word = table.string_or("signed", "packages");
  if (word == "packages") return RpmSigned::Packages;
  if (word == "index") return RpmSigned::Index;
  if (word == "both") return RpmSigned::Both;
  if (word == "nothing") return RpmSigned::Nothing;
  table.refuse("signed", "this is not what a repository signs", "packages, index, both or nothing", word);
}

std::string repository_url(TomlTable& table) {
  const std::string text = table.string("url");
  std::string plain = text;
  for (const std::string_view variable : {"$releasever", "$basearch"})
    for (std::size_t at; (at = plain.find(variable)) != plain.npos;) plain.replace(at, variable.size(), "x");
  const std::optional<Url> url = parse_url(plain);
  const bool known = url && (url->scheme == "https" || url->scheme == "http" || url->scheme == "file");
  if (!known || url->has_query || url->has_fragment || plain.find_first_of("$,; '\"") != plain.npos)
    table.refuse("url", "this is not the address of a repository",
                 "the folder that holds repodata/: https://…, http://… or file:///…, with $releasever and $basearch",
                 without_credentials(text));
  if (url->has_credentials)
    table.refuse("url", "the address holds a name or a password, and a lock keeps addresses", {},
                 without_credentials(text), "serve the repository where no password is asked");
  return text.ends_with('/') ? text.substr(0, text.size() - 1) : text;
}

std::vector<fs::path> keys_of(TomlTable& table, const fs::path& folder) {
  std::vector<fs::path> keys;
  for (const std::string& name : table.strings("keys")) {
    const fs::path file = fs::absolute(folder / name).lexically_normal();
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored))
      table.refuse("keys", "the key is not there", "a file", file.string(), "the path is relative to the job file");
    const std::string text = bundle::read_text(fs::canonical(file), kMaxRpmKeys);
    if (text.find("-----BEGIN PGP PUBLIC KEY BLOCK-----") == text.npos || text.find("PRIVATE KEY") != text.npos)
      table.refuse("keys", "this is not a file of armored OpenPGP public keys", "-----BEGIN PGP PUBLIC KEY BLOCK-----",
                   file.string(), "gpg --armor --export KEY > FILE");
    keys.push_back(file);
  }
  return keys;
}

RpmRepository read_repository(TomlTable& table, const fs::path& folder) {
  RpmRepository repository;
  table.attempt([&] {
    repository.name = table.plain_name("name");
    if (!consists_of_rpm(repository.name, "._-"))
      table.refuse("name", "this is not the name of a repository", "letters, digits, '.', '_' and '-'",
                   repository.name);
  });
  table.attempt([&] { repository.url = repository_url(table); });
  table.attempt([&] { repository.keys = keys_of(table, folder); });
  table.attempt([&] { repository.checked = checked_of(table); });
  table.done();
  if (repository.checked != RpmSigned::Nothing && repository.keys.empty())
    table.refuse("keys", "no key says who signs this repository", "like [\"RPM-GPG-KEY-site\"]", {},
                 "name the keys; signed = \"nothing\" takes what comes, and the lock says so");
  if (repository.checked == RpmSigned::Nothing && !repository.keys.empty())
    table.refuse("keys", "keys are named, and signed = \"nothing\" checks nothing with them", {}, {},
                 "leave one of the two out");
  return repository;
}

bundle::Digest rpm_digest(TomlTable& table) {
  const std::string text = table.string("sha256");
  const std::optional<bundle::Digest> value = bundle::Digest::from_hex(text);
  if (!value) table.refuse("sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits", text);
  return *value;
}

// A file of the repodata's folder, or the keys.
bool is_index_file(const std::string& file) {
  const std::string_view folder = "repodata/";
  const std::string name = file.starts_with(folder) ? file.substr(folder.size()) : file;
  return file == "keys.asc" || (name != file && consists_of_rpm(name, "._-") && !name.starts_with('.'));
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + toml_quoted(text);
  return "[" + out + "]";
}

}  // namespace

bool is_rpm_name(const std::string& name) {
  return consists_of_rpm(name, "._+~^-") && consists_of_rpm(name.substr(0, 1), "_") && name.ends_with(".rpm") &&
         std::count(name.begin(), name.end(), '-') >= 2 && name.size() <= 200;
}

JobRpm read_job_rpm(TomlTable& job, const fs::path& folder) {
  JobRpm rpm;
  if (!job.has("rpm")) return rpm;
  TomlTable table = job.table("rpm");
  table.attempt([&] {
    rpm.packages = table.strings("packages");
    if (rpm.packages.empty()) table.refuse("packages", "no package is named", "like [\"gcc-c++\"]");
    for (const std::string& package : rpm.packages)
      if (!is_rpm_request(package))
        table.refuse("packages", "this is not the name of an rpm package", "NAME or NAME-VERSION-RELEASE", package);
  });
  table.attempt([&] {
    rpm.release = table.string("release");
    if (!consists_of_rpm(rpm.release, "._-"))
      table.refuse("release", "this is not a release of a system", "like \"9\"", rpm.release);
  });
  table.attempt([&] {
    std::set<std::string> names;
    table.each("repository", [&](TomlTable& item) {
      rpm.repositories.push_back(read_repository(item, folder));
      if (!names.insert(rpm.repositories.back().name).second)
        item.refuse("name", "two repositories have one name", {}, rpm.repositories.back().name);
    });
    if (rpm.repositories.empty())
      table.refuse("repository", "no repository is named, and this machine's own are not those of the target",
                   "[[rpm.repository]] with name, url and keys");
  });
  table.done();
  return rpm;
}

LockedRpm read_locked_rpm(TomlTable& lock) {
  LockedRpm rpm;
  if (!lock.has("rpm")) return rpm;
  TomlTable table = lock.table("rpm");
  rpm = {.release = table.string("release"),
         .packages = table.strings("packages"),
         .unsigned_repositories = table.strings("unsigned"),
         .index = {},
         .rpms = {}};
  for (TomlTable& item : table.tables("index")) {
    rpm.index.push_back({.file = item.string("file"), .size = item.integer("size"), .sha256 = rpm_digest(item)});
    if (!is_index_file(rpm.index.back().file))
      item.refuse("file", "this is no file of an index", "repodata/NAME or keys.asc", rpm.index.back().file);
    item.done();
  }
  for (TomlTable& item : table.tables("package")) {
    rpm.rpms.push_back({.file = item.string("file"),
                        .url = item.string("url"),
                        .size = item.integer("size"),
                        .sha256 = rpm_digest(item)});
    if (!is_rpm_name(rpm.rpms.back().file))
      item.refuse("file", "this is not the file name of an rpm package", "NAME-VERSION-RELEASE.ARCH.rpm",
                  rpm.rpms.back().file);
    item.done();
  }
  table.done();
  if (rpm.rpms.empty() || rpm.index.empty())
    lock.refuse("rpm", "[rpm] has no packages or no index", {}, {}, "run sealift-pack lock again");
  const auto by_file = [](const auto& a, const auto& b) { return a.file < b.file; };
  std::sort(rpm.index.begin(), rpm.index.end(), by_file);
  std::sort(rpm.rpms.begin(), rpm.rpms.end(), by_file);
  return rpm;
}

std::string write_locked_rpm(const LockedRpm& rpm) {
  if (rpm.rpms.empty()) return {};
  std::string out =
      fmt::format("\n[rpm]\nrelease = {}\npackages = {}\n", toml_quoted(rpm.release), quoted_list(rpm.packages));
  if (!rpm.unsigned_repositories.empty()) out += "unsigned = " + quoted_list(rpm.unsigned_repositories) + "\n";
  for (const LockedRpmIndex& file : rpm.index)
    out += fmt::format("\n[[rpm.index]]\nfile = {}\nsha256 = {}\nsize = {}\n", toml_quoted(file.file),
                       toml_quoted(file.sha256.hex()), file.size);
  for (const LockedRpmPackage& package : rpm.rpms)
    out += fmt::format("\n[[rpm.package]]\nfile = {}\nurl = {}\nsha256 = {}\nsize = {}\n", toml_quoted(package.file),
                       toml_quoted(package.url), toml_quoted(package.sha256.hex()), package.size);
  return out;
}

}  // namespace sealift::packager
