// SPDX-License-Identifier: Apache-2.0
// Reads what native_files has read of each ELF header; see file_check.hpp.
#include "packager/native/file_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

using bundle::GlibcVersion;
using Kind = NativeFinding::Kind;

namespace {

// Since this version dlopen refuses libraries that ask for an executable stack (NEWS of glibc 2.41).
constexpr GlibcVersion kStrictStacks{2, 41};

}  // namespace

NativeFindings architecture_findings(const NativeIndex& index) {
  NativeFindings findings;
  std::set<std::string> owners;  // that have something for the target
  std::map<std::pair<std::string, std::string>, std::set<std::string>> foreign;
  std::set<std::string> imported;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (!index.at(i).fault.empty()) continue;
    if (index.fits(i)) {
      owners.insert(index.at(i).owner);
      continue;
    }
    foreign[{index.at(i).owner, index.at(i).elf.arch}].insert(described(index.at(i)));
    if (is_extension(index.at(i)) || !index.at(i).from_wheel) imported.insert(index.at(i).owner);
  }
  for (const auto& [owner, files] : foreign) {
    // A wheel for any machine promises nothing native: its ELF files are data.
    const Severity severity = imported.contains(owner.first)           ? Severity::Refusal
                              : owners.contains(owner.first)           ? Severity::Note
                              : owner.first.ends_with("-none-any.whl") ? Severity::Warning
                                                                       : Severity::Refusal;
    findings.push_back({Kind::WrongArchitecture,
                        severity,
                        {},
                        fmt::format("{} is for {}, the target is {}", several(files), owner.second, index.arch()),
                        "use a build for the target"});
  }
  return findings;
}

NativeFindings file_findings(const NativeIndex& index, const NativeWalk& walk, const GlibcVersion& glibc) {
  NativeFindings findings;
  std::set<std::size_t> providers;
  for (const auto& [edge, provider] : walk.found) providers.insert(provider);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const NativeFile& file = index.at(i);
    if (bundle::is_driver_library(file.file_name()) && ("/" + file.path).find("/stubs/") == std::string::npos)
      findings.push_back({Kind::DriverLibrary, Severity::Refusal, file.file_name(),
                          described(file) + " is a part of the GPU driver, which must be the target's own",
                          "leave this package out, and install the driver on the target"});
    if (!file.fault.empty())
      findings.push_back({Kind::Unreadable,
                          is_extension(file) ? Severity::Refusal : Severity::Warning,
                          {},
                          described(file) + ": " + file.fault,
                          "use another build, if this file is needed"});
    if (!index.fits(i) || is_program(file)) continue;
    if (file.elf.executable_stack && file.elf.dynamic)
      findings.push_back(
          {Kind::ExecutableStack,
           glibc < kStrictStacks ? Severity::Warning : Severity::Refusal,
           {},
           described(file) + " asks for an executable stack, which glibc 2.41 and hardened kernels refuse",
           "use a build that was linked with -z noexecstack"});
    if (file.elf.text_relocations)
      findings.push_back({Kind::TextRelocations,
                          Severity::Note,
                          {},
                          described(file) + " has text relocations, which hardened kernels refuse",
                          "use a build made with -fPIC"});
    if (providers.contains(i) && file.elf.soname.empty())
      findings.push_back({Kind::NoSoname,
                          Severity::Warning,
                          {},
                          described(file) + " is needed by others but has no SONAME, so it may be loaded twice",
                          "use a build that was linked with -Wl,-soname"});
  }
  return findings;
}

std::optional<unsigned> carried_cuda(const NativeIndex& index) {
  static constexpr std::string_view kRuntime = "libcudart.so.";
  std::optional<unsigned> newest;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::string& soname = index.at(i).elf.soname;
    if (!index.fits(i) || is_program(index.at(i)) || !soname.starts_with(kRuntime)) continue;
    unsigned major = 0;
    const auto [end, fault] = std::from_chars(soname.data() + kRuntime.size(), soname.data() + soname.size(), major);
    if (fault == std::errc()) newest = std::max(newest.value_or(0), major);
  }
  return newest;
}

}  // namespace sealift::packager
