// SPDX-License-Identifier: Apache-2.0
// Finds a glibc to carry; see carried_runtime.hpp. All of it comes from one folder, because its parts only
// work with each other (they share symbols of version GLIBC_PRIVATE).
#include "packager/libraries/carried_runtime.hpp"

#include "packager/libraries/elf_on_disk.hpp"
#include "sealift/bundle/native/libc_version.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::ElfFile;
using bundle::Error;
using bundle::ErrorCode;
using bundle::GlibcVersion;

namespace {

constexpr std::string_view kRuntimeFolder = "lib/runtime/";
constexpr const char* kLibc = "libc.so.6";
constexpr GlibcVersion kFirstWithArgv0{2, 33};  // NEWS of glibc 2.33: "ld.so --argv0"

// glibc's file list, without what only debuggers and old build systems open. Since 2.34 several are empty, but old
// wheels still need them. The target's nsswitch.conf decides which name services are opened.
constexpr const char* kNeeded[] = {kLibc,        "libm.so.6",    "libpthread.so.0", "libdl.so.2",
                                   "librt.so.1", "libutil.so.1", "libresolv.so.2",  "libanl.so.1"};
constexpr const char* kVectorMath = "libmvec.so.1";  // on aarch64 since 2.38, and only where gcc was new enough
constexpr const char* kOptionalLibraries[] = {"libnss_compat.so.2", "libnss_dns.so.2", "libnss_files.so.2",
                                              "libnss_hesiod.so.2"};

std::optional<ElfFile> read_library(const fs::path& file, const std::string& arch) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  std::optional<ElfFile> elf = read_elf_file(file);
  return elf && elf->arch == arch ? elf : std::nullopt;
}

[[noreturn]] void refuse_incomplete(const fs::path& folder, const std::string& name) {
  throw Error(ErrorCode::Missing, {.what = "the glibc of this machine is incomplete, so it cannot be carried",
                                   .where = (folder / name).string(),
                                   .expected = "a library of the target's architecture",
                                   .next = "install the distribution's glibc (Debian: libc6) again"});
}

RuntimeFiles take(const fs::path& folder, const ElfFile& libc, const std::string& arch) {
  bundle::FileSource source(fs::canonical(folder / kLibc));
  const GlibcVersion glibc = bundle::libc_version(source, libc).value_or(GlibcVersion{});
  if (glibc < kFirstWithArgv0)
    throw Error(ErrorCode::Platform, {.what = "the glibc of this machine is too old to be carried",
                                      .where = (folder / kLibc).string(),
                                      .expected = "glibc " + kFirstWithArgv0.text() + " or newer",
                                      .got = "glibc " + glibc.text(),
                                      .next = "pack on a newer distribution"});
  if (libc.kernel_floor.empty()) refuse_incomplete(folder, kLibc);  // every real one states its kernel
  RuntimeFiles found{.runtime = {.glibc = glibc, .kernel = libc.kernel_floor}, .files = {}};
  std::vector<std::string> needed(std::begin(kNeeded), std::end(kNeeded));
  needed.emplace_back(bundle::loader_name(arch));  // sealift-start has it by the same name
  if (arch == "x86_64" || read_library(folder / kVectorMath, arch)) needed.emplace_back(kVectorMath);
  for (const std::string& name : needed) {
    if (!read_library(folder / name, arch)) refuse_incomplete(folder, name);
    found.files[name] = folder / name;
  }
  for (const char* name : kOptionalLibraries)
    if (read_library(folder / name, arch)) found.files[name] = folder / name;
  return found;
}

}  // namespace

RuntimeFiles find_runtime(const std::string& arch, const std::vector<fs::path>& folders) {
  std::string looked;
  for (const fs::path& folder : folders) {
    if (const std::optional<ElfFile> libc = read_library(folder / kLibc, arch)) return take(folder, *libc, arch);
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  throw Error(ErrorCode::Missing, {.what = "there is no glibc on this machine to carry",
                                   .where = looked,
                                   .expected = std::string(kLibc) + " for " + arch,
                                   .next = "pack on a machine that has one"});
}

void carry_runtime(Tree& tree, const RuntimeFiles& runtime) {
  for (const auto& [name, file] : runtime.files)
    tree[std::string(kRuntimeFolder) + name] = {.source = file, .executable = name.starts_with("ld-linux-")};
}

bool is_runtime_file(const std::string& path) {
  return path.starts_with(kRuntimeFolder);
}

}  // namespace sealift::packager
