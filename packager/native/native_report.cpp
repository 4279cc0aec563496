// SPDX-License-Identifier: Apache-2.0
// Findings as text and JSON; see native_report.hpp.
#include "packager/native/native_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/libraries/native_closure.hpp"
#include "packager/native/driver_floor.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using Kind = NativeFinding::Kind;

namespace {

constexpr std::size_t kMaxShown = 100;

// The remedy for a library that nothing brings: this machine may have it.
std::string remedy_from_host(const std::string& library, const bundle::Target& target,
                             const std::vector<fs::path>& host) {
  for (const fs::path& folder : host) {
    std::error_code error;
    const fs::path file = fs::canonical(folder / library, error);
    if (error || !fs::is_regular_file(file, error) || fs::file_size(file) == 0) continue;
    bundle::FileSource source(file);
    const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
    if (!elf || elf->arch != target.arch) continue;
    if (const auto floor = elf->glibc_floor(); floor && target.glibc < *floor)
      return fmt::format(
          "{} of this machine needs glibc {}; take it from an older system, whose root a folder here is, or say that "
          "the "
          "target has it, or require a wheel that brings it:\n         [target]\n         system = \"DIR\"            "
          "# or\n         host_libraries = [{}]",
          file.string(), floor->text(), toml_quoted(library));
    return fmt::format(
        "carry this machine's: add to the job file, and lock again:\n         [[program]]\n         source = {}\n      "
        " "
        "  into = {}\n         executable = false",
        toml_quoted(file.string()), toml_quoted("lib/" + library));
  }
  return "require a wheel that brings it, or install the package that has it on this machine and carry it as a "
         "[[program]] into lib/; where the target has it itself (a vendor's stack), say so in the job file:\n         "
         "[target]\n         host_libraries = [" +
         toml_quoted(library) + "]";
}

std::string_view name_of(Severity severity) {
  return severity == Severity::Refusal ? "refusal" : severity == Severity::Warning ? "warning" : "note";
}

std::string_view name_of(Kind kind) {
  static constexpr std::string_view kNames[] = {
      "missing-library",  "loaded-before",    "targets-own",      "wrong-architecture",
      "undefined-symbol", "symbol-version",   "glibc-floor",      "opened-library",
      "unknown-name",     "driver-library",   "searched-folder",  "same-name",
      "search-path",      "executable-stack", "text-relocations", "no-soname",
      "circle",           "unreadable",       "machine"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

void require_native(const NativeReport& report, const bundle::Target& target, const std::vector<fs::path>& host) {
  std::string got;
  std::size_t number = 0;
  ErrorCode code = ErrorCode::Platform;
  for (const NativeFinding& finding : report.findings) {
    if (finding.severity != Severity::Refusal) continue;
    if (finding.kind == Kind::MissingLibrary || finding.kind == Kind::OpenedLibrary) code = ErrorCode::Missing;
    if ((finding.kind == Kind::SearchedFolder || finding.kind == Kind::SameName) && code == ErrorCode::Platform)
      code = ErrorCode::Conflict;
    if (++number > kMaxShown) continue;
    const std::string next = finding.next.empty() ? remedy_from_host(finding.library, target, host) : finding.next;
    got += fmt::format("\n    {}. {}\n       -> {}", number, finding.what, next);
  }
  if (number == 0) return;
  if (number > kMaxShown) got += fmt::format("\n    and {} more", number - kMaxShown);
  throw Error(code, {.what = fmt::format("the bundle would not work on the target: {} finding(s)", number),
                     .where = fmt::format("{}, glibc {}; {} ELF files", target.arch, target.glibc.text(), report.files),
                     .got = got,
                     .next = "each finding says what to do; then lock and create again"});
}

bundle::GlibcVersion glibc_floor(const NativeReport& report) {
  const SymbolFloors all = highest(report.floors);
  const auto glibc = all.find("GLIBC");
  return glibc == all.end() ? bundle::GlibcVersion{} : glibc->second.version;
}

std::string native_summary(const NativeReport& report) {
  std::string text =
      fmt::format("native: {} ELF files need {} libraries, all there; {} warning(s), {} note(s)", report.files,
                  report.needed, report.count(Severity::Warning), report.count(Severity::Note));
  for (const auto& [family, floor] : highest(report.floors))
    for (const auto& [owner, floors] : report.floors)
      if (const auto own = floors.find(family); own != floors.end() && own->second.path == floor.path)
        text += fmt::format("\n  floor {}_{} because of {}", family, floor.text(), owner);
  for (const NativeFinding& finding : report.findings)
    if (finding.kind == Kind::GlibcFloor && finding.severity == Severity::Note) text += "\n  " + finding.what;
  if (const std::string driver = driver_text(report.cuda); !driver.empty()) text += "\n  " + driver;
  return text;
}

bundle::Json native_json(const NativeReport& report) {
  bundle::Json findings = bundle::Json::array();
  for (const NativeFinding& finding : report.findings)
    findings.push_back({{"kind", name_of(finding.kind)},
                        {"severity", name_of(finding.severity)},
                        {"library", finding.library},
                        {"what", finding.what},
                        {"next", finding.next}});
  bundle::Json components = bundle::Json::object();
  for (const auto& [owner, floors] : report.floors)
    for (const auto& [family, floor] : floors) components[owner][family] = floor.text();
  bundle::Json floors = bundle::Json::object();
  for (const auto& [family, floor] : highest(report.floors)) floors[family] = floor.text();
  bundle::Json json = {{"files", report.files},
                       {"needed", report.needed},
                       {"floors", std::move(floors)},
                       {"components", std::move(components)},
                       {"findings", std::move(findings)}};
  if (!report.gpu_code.empty()) json["gpu_code"] = report.gpu_code;
  if (report.cuda) json["cuda"] = *report.cuda;
  if (const auto driver = report.cuda ? driver_floor(*report.cuda) : std::nullopt) json["driver_floor"] = *driver;
  return json;
}

}  // namespace sealift::packager
