// SPDX-License-Identifier: Apache-2.0
// The C library's version is read as the packager reads that of a glibc it carries; libstdc++'s is the newest version
// that it offers, as its symbols are what a bundle's floor counts.
#include "installer/host/probe.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "installer/host/fuse_needs.hpp"
#include "installer/host/probe_hardware.hpp"
#include "installer/start/host_authorities.hpp"
#include "sealift/bundle/native/elf.hpp"
#include "sealift/bundle/native/libc_version.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// Where distributions keep their libraries, the dynamic linker's own folder first.
std::vector<fs::path> library_folders(const fs::path& root, const std::string& arch) {
  std::vector<fs::path> places;
  std::error_code error;
  for (const char* linker : {"lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"}) {
    const fs::path real = fs::canonical(root / linker, error);
    if (!error) places.push_back(real.parent_path());
  }
  for (const std::string& folder :
       {"lib/" + arch + "-linux-gnu", "usr/lib/" + arch + "-linux-gnu", std::string("lib64"), std::string("usr/lib64"),
        std::string("lib"), std::string("usr/lib")})
    places.push_back(root / folder);
  return places;
}

// Nothing when the file is missing, damaged or of another architecture: another folder may have a good one.
std::optional<bundle::ElfFile> library(const fs::path& file, const std::string& arch) {
  try {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return std::nullopt;
    bundle::FileSource source(file);
    std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
    return elf && elf->arch == arch ? elf : std::nullopt;
  } catch (const bundle::Error&) {
    return std::nullopt;
  }
}

void probe_libc(const std::vector<fs::path>& folders, Machine& machine) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path libc = fs::canonical(folder / "libc.so.6", error);  // a link to libc-2.31.so on older hosts
    const std::optional<bundle::ElfFile> elf = error ? std::nullopt : library(libc, machine.target.arch);
    if (!elf) continue;
    bundle::FileSource source(libc);
    const std::optional<bundle::GlibcVersion> version = bundle::libc_version(source, *elf);
    if (!version) continue;
    machine.target.glibc = *version;
    machine.libc = libc;
    return;
  }
}

// The newest "PREFIXx.y.z" that is offered, as "x.y.z".
std::string newest(const bundle::ElfFile& elf, const std::string& prefix) {
  std::string best;
  for (const std::string& version : elf.offered_versions) {
    if (!version.starts_with(prefix)) continue;
    const std::string number = version.substr(prefix.size());
    const bool dotted =
        std::all_of(number.begin(), number.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    if (dotted && bundle::Version::leading(best) < bundle::Version::leading(number)) best = profile_text(number);
  }
  return best;
}

void probe_libstdcxx(const std::vector<fs::path>& folders, bundle::Target& target) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path file = fs::canonical(folder / "libstdc++.so.6", error);
    const std::optional<bundle::ElfFile> elf = error ? std::nullopt : library(file, target.arch);
    if (!elf) continue;
    target.glibcxx = newest(*elf, "GLIBCXX_");
    target.cxxabi = newest(*elf, "CXXABI_");
    return;
  }
}

// ID and VERSION_ID; values may stand in quotes.
std::string distribution_of(const fs::path& root) {
  std::string text = head_of(root / "etc/os-release");
  if (text.empty()) text = head_of(root / "usr/lib/os-release");
  const auto value = [&text](const std::string& key) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(key + "=")) continue;
      line.erase(0, key.size() + 1);
      line.erase(std::remove_if(line.begin(), line.end(), [](char c) { return c == '"' || c == '\''; }), line.end());
      return line;
    }
    return std::string();
  };
  return profile_text(value("ID") + " " + value("VERSION_ID"));
}

std::string kernel_of(const fs::path& root, const utsname& names) {
  const std::string release = profile_text(head_of(root / "proc/sys/kernel/osrelease"));
  return release.empty() ? profile_text(names.release) : release;
}

// The python3.N in the folders for programs; RHEL 8 hides its own one in libexec.
std::vector<std::string> pythons_of(const fs::path& root) {
  std::set<unsigned> minors;
  for (const char* folder : {"usr/bin", "usr/local/bin", "bin", "usr/libexec"}) {
    std::error_code error;
    for (fs::directory_iterator it(root / folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const std::size_t at = name.find("python3.");
      if (at != 0 && name.substr(0, at) != "platform-") continue;
      unsigned minor = 0;
      const char* const last = name.data() + name.size();
      const auto [stop, fault] = std::from_chars(name.data() + at + 8, last, minor);
      if (fault == std::errc() && stop == last && minor < 100) minors.insert(minor);
    }
  }
  std::vector<std::string> out;
  for (const unsigned minor : minors)
    if (out.size() < 6) out.push_back("3." + std::to_string(minor));
  return out;
}

// Only which files exist: no file says whether a FIPS module is configured or validated.
std::vector<std::string> crypto_of(const fs::path& root, const std::vector<fs::path>& folders) {
  const auto there = [&folders](const char* name) {
    std::error_code error;
    return std::any_of(folders.begin(), folders.end(),
                       [&](const fs::path& place) { return fs::exists(place / name, error); });
  };
  std::vector<std::string> out;
  for (const char* version : {"1.1", "3"})
    if (there((std::string("libcrypto.so.") + version).c_str())) out.push_back(std::string("libcrypto ") + version);
  if (there("ossl-modules/fips.so")) out.emplace_back("fips provider");
  if (head_of(root / "proc/sys/crypto/fips_enabled").starts_with('1')) out.emplace_back("fips kernel");
  return out;
}

// In the order of setlocale(3).
std::string locale_of_environment() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return profile_text(value);
  return {};
}

std::string compiler_of(const fs::path& root) {
  for (const char* file : {"usr/bin/cc", "usr/bin/gcc", "usr/bin/clang", "usr/local/bin/cc", "usr/local/bin/gcc"})
    if (::access((root / file).c_str(), X_OK) == 0) return std::string("/") + file;
  return {};
}

// Where Debian and its kin, EL, SUSE and Alpine have them; sealift-start asks for the same files.
std::string authorities_of(const fs::path& root) {
  for (const std::string_view file : kAuthorities)
    if (::access((root / file.substr(1)).c_str(), R_OK) == 0) return std::string(file);
  return {};
}

}  // namespace

Machine probe(const fs::path& root) {
  utsname names{};
  ::uname(&names);
  Machine machine{.target = {.arch = names.machine}, .libc = {}};
  bundle::Target& target = machine.target;
  const std::vector<fs::path> folders = library_folders(root, target.arch);
  probe_libc(folders, machine);
  probe_libstdcxx(folders, target);
  target.distribution = distribution_of(root);
  target.kernel = kernel_of(root, names);
  probe_hardware(root, target);
  target.python = pythons_of(root);
  target.crypto = crypto_of(root, folders);
  machine.shared_memory = probe_shared_memory(root);
  machine.locale = locale_of_environment();
  machine.compiler = compiler_of(root);
  machine.authorities = authorities_of(root);
  FuseNeeds needs = fuse_needs_here();
  needs.device = root / needs.device.relative_path();
  needs.helper = root / needs.helper.relative_path();
  machine.fuse = fuse_missing(needs);
  std::error_code ignored;
  machine.time_zones = fs::exists(root / "usr/share/zoneinfo/UTC", ignored);
  return machine;
}

}  // namespace sealift::installer
