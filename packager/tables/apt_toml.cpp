// SPDX-License-Identifier: Apache-2.0
// Reads and writes [apt]; see apt_toml.hpp. Packages become arguments of apt, so few characters are allowed in them.
#include "packager/tables/apt_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sealift::packager {

namespace {

bool consists_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || others.find(c) != others.npos;
  });
}

// Debian policy 5.6.7 and 5.6.12: a name, and a version after '='.
bool is_request(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!consists_of(name, "+-.") || name.size() < 2 || !consists_of(name.substr(0, 1), "") || name.back() == '-')
    return false;
  return equals == text.npos || consists_of(text.substr(equals + 1), "ABCDEFGHIJKLMNOPQRSTUVWXYZ.+-~:");
}

bool is_suite(const std::string& text) {
  return consists_of(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_") &&
         consists_of(text.substr(0, 1), "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

bundle::Digest digest(TomlTable& table, const std::string& key) {
  const std::string text = table.string(key);
  const std::optional<bundle::Digest> value = bundle::Digest::from_hex(text);
  if (!value) table.refuse(key, "this is not a SHA-256", "64 lower-case hexadecimal digits", text);
  return *value;
}

}  // namespace

bool is_deb_name(const std::string& name) {
  return consists_of(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ.+-~_") && name.front() != '.' && name.ends_with(".deb") &&
         std::count(name.begin(), name.end(), '_') == 2;
}

JobApt read_job_apt(TomlTable& job) {
  JobApt apt;
  if (!job.has("apt")) return apt;
  TomlTable table = job.table("apt");
  table.attempt([&] {
    apt.packages = table.strings("packages");
    if (apt.packages.empty()) table.refuse("packages", "no package is named", "like [\"g++\"]");
    for (const std::string& package : apt.packages)
      if (!is_request(package))
        table.refuse("packages", "this is not the name of a Debian package", "NAME or NAME=VERSION", package);
  });
  bool has_sources = table.has("sources");
  table.attempt([&] {
    apt.sources = table.strings("sources");
    has_sources = !apt.sources.empty();
    for (const std::string& source : apt.sources)
      if (!source.starts_with("deb ") || source.find_first_of("\r\n") != source.npos)
        table.refuse("sources", "this is not a line of a sources.list", "deb [OPTIONS] ADDRESS SUITE COMPONENT...",
                     source);
  });
  table.attempt([&] {
    apt.suite = has_sources ? table.string_or("suite", "") : table.string("suite");
    if (!apt.suite.empty() && !is_suite(apt.suite))
      table.refuse("suite", "this is not the name of a suite", "like \"bookworm\"", apt.suite);
  });
  table.done();
  return apt;
}

LockedApt read_locked_apt(TomlTable& lock) {
  LockedApt apt;
  if (lock.has("apt")) {
    TomlTable table = lock.table("apt");
    apt = {.suite = table.string("suite"),
           .packages = table.strings("packages"),
           .index_size = table.integer("index_size"),
           .index_sha256 = digest(table, "index_sha256"),
           .debs = {}};
    table.done();
  }
  for (TomlTable& item : lock.tables("deb")) {
    LockedDeb deb{.file = item.string("file"),
                  .url = item.string("url"),
                  .size = item.integer("size"),
                  .sha256 = digest(item, "sha256")};
    if (!is_deb_name(deb.file))
      item.refuse("file", "this is not the file name of a Debian package", "NAME_VERSION_ARCH.deb", deb.file);
    item.done();
    apt.debs.push_back(std::move(deb));
  }
  std::sort(apt.debs.begin(), apt.debs.end(), [](const LockedDeb& a, const LockedDeb& b) { return a.file < b.file; });
  if (apt.debs.empty() != apt.packages.empty())
    lock.refuse("apt", "[apt] and the [[deb]] tables do not match", {}, {}, "run sealift-pack lock again");
  return apt;
}

std::string write_locked_apt(const LockedApt& apt) {
  if (apt.debs.empty()) return {};
  std::string packages;
  for (const std::string& package : apt.packages) packages += (packages.empty() ? "" : ", ") + toml_quoted(package);
  std::string out = fmt::format("\n[apt]\nsuite = {}\npackages = [{}]\nindex_sha256 = {}\nindex_size = {}\n",
                                toml_quoted(apt.suite), packages, toml_quoted(apt.index_sha256.hex()), apt.index_size);
  for (const LockedDeb& deb : apt.debs)
    out += fmt::format("\n[[deb]]\nfile = {}\nurl = {}\nsha256 = {}\nsize = {}\n", toml_quoted(deb.file),
                       toml_quoted(deb.url), toml_quoted(deb.sha256.hex()), deb.size);
  return out;
}

}  // namespace sealift::packager
