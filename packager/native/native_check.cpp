// SPDX-License-Identifier: Apache-2.0
// Judges what native_walk found; see native_check.hpp. One finding for each library or component, not for each file.
#include "packager/native/native_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "packager/native/carried_runtime.hpp"
#include "packager/native/dlopen_table.hpp"
#include "packager/native/native_walk.hpp"
#include "packager/native/renamed_libraries.hpp"
#include "packager/native/symbol_check.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

using bundle::GlibcVersion;
using Kind = NativeFinding::Kind;

namespace {

// Since this version dlopen refuses libraries that ask for an executable stack (NEWS of glibc 2.41).
constexpr GlibcVersion kStrictStacks{2, 41};

// "a, b and 3 more".
std::string several(const std::set<std::string>& names) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& name : names)
    if (count++ < 3) text += (text.empty() ? "" : ", ") + name;
  return count > 3 ? fmt::format("{} and {} more", text, count - 3) : text;
}

bool is_extension(const NativeFile& file) {
  const std::string name = file.file_name();
  return name.ends_with(".abi3.so") || (name.ends_with(".so") && name.find(".cpython-") != name.npos);
}

// "torch/lib/libc10.so of torch-2.11.0-...whl".
std::string described(const NativeFile& file) {
  if (file.owner.ends_with(" " + file.path)) return file.owner;  // "the program bin/x"
  const std::size_t site = file.path.find("/site-packages/");
  return (site == file.path.npos ? file.path : file.path.substr(site + 15)) + " of " + file.owner;
}

class Check {
 public:
  Check(const NativeFiles& files, const bundle::Target& target, const std::string& interpreter,
        const std::optional<bundle::CarriedRuntime>& runtime, const std::vector<std::uint64_t>& of_target)
      : machine_(target),
        of_target_(of_target),
        carried_(runtime.has_value()),
        target_(loaded_with(target, runtime)),
        index_(files, target.arch),
        walk_(walk_native(index_, interpreter, runtime.has_value())) {
    report_.files = index_.size();
    report_.needed = walk_.needed;
    report_.floors = symbol_floors(files, target.arch);
    used_ = walk_.opened;
    for (const auto& [edge, provider] : walk_.found) used_.insert(provider);
    for (const NativeFile& file : files.files)
      for (std::string& name : names_before(file.file_name())) renamed_.emplace(file.owner, std::move(name));
  }

  NativeReport run() {
    needed_libraries();
    program_gaps();
    symbol_versions();
    symbols();
    glibc_floors();
    programs_on_their_own();
    opened_libraries();
    architectures();
    each_file();
    cycles();
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const NativeFinding& a, const NativeFinding& b) { return a.severity > b.severity; });
    return std::move(report_);
  }

 private:
  void find(Kind kind, Severity severity, std::string library, std::string what, std::string next) {
    report_.findings.push_back({kind, severity, std::move(library), std::move(what), std::move(next)});
  }
  bool in_bundle(const std::string& library) const {
    const std::vector<std::size_t> there = index_.named(library);
    return std::any_of(there.begin(), there.end(), [&](std::size_t file) { return index_.fits(file); });
  }
  const NativeFile& at(std::size_t file) const { return index_.at(file); }

  // Python does not import files with a versioned name: ld.so loads them for somebody's NEEDED, or code opens them.
  bool is_stray(std::size_t file) const {
    const std::string name = at(file).file_name();
    return at(file).from_wheel && name.find(".so.") != name.npos && !used_.contains(file);
  }

  void missing(const std::string& library, const std::set<std::string>& who, bool optional, bool stray = false) {
    std::string other;
    for (const std::size_t file : index_.named(library)) other = at(file).elf.arch;
    const std::string what =
        fmt::format("{} is not in the bundle{}; wanted by {}{}", library, other.empty() ? "" : " but for " + other,
                    several(who), stray ? ", which nothing in the bundle needs" : "");
    if (stray)
      find(Kind::MissingLibrary, Severity::Warning, library, what,
           "nothing, unless Python code opens it by name; then carry the library as a [[program]] into lib/");
    else if (optional)
      find(Kind::MissingLibrary, Severity::Note, library, what, "nothing, unless the site uses this plugin");
    else if (library.find('/') != library.npos)
      find(
          Kind::MissingLibrary, Severity::Refusal, library, what,
          "whoever built it linked a library without SONAME, so it is looked for at that very path; use another build");
    else
      find(Kind::MissingLibrary, Severity::Refusal, library, what, {});
  }

  // Libraries, and what they need in the interpreter's process.
  void needed_libraries() {
    std::map<std::string, std::set<std::string>> lost, optional, stray, before;
    for (std::size_t file = 0; file < index_.size(); ++file) {
      if (!index_.fits(file) || is_program(at(file))) continue;
      for (const std::string& wanted : at(file).elf.needed) {
        const std::string library = wanted.substr(wanted.rfind('/') + 1);
        if (bundle::belongs_to_target(library) || walk_.found.contains({file, wanted})) continue;
        const bool plugin = bundle::is_optional_plugin(at(file).file_name());
        (in_bundle(wanted) ? before
         : plugin          ? optional
         : is_stray(file)  ? stray
                           : lost)[wanted]
            .insert(described(at(file)));
      }
    }
    for (const auto& [library, who] : lost) missing(library, who, false);
    for (const auto& [library, who] : optional) missing(library, who, true);
    for (const auto& [library, who] : stray) missing(library, who, false, true);
    for (const auto& [library, who] : before)
      find(Kind::LoadedBefore, Severity::Note, library,
           fmt::format("{} is found only once something else has loaded {}", several(who), library),
           "nothing, if the package that brings it is imported first");
  }

  void program_gaps() {
    std::map<std::string, std::set<std::string>> lost;
    std::map<std::size_t, std::set<std::string>> unseen;  // program -> libraries that lie in the bundle
    for (const ProgramGap& gap : walk_.gaps) {
      if (in_bundle(gap.wanted))
        unseen[gap.program].insert(gap.wanted);
      else
        lost[gap.wanted].insert(described(at(gap.by)));
    }
    for (const auto& [library, who] : lost) missing(library, who, false);
    for (const auto& [program, libraries] : unseen)
      find(Kind::TargetsOwn, at(program).from_wheel ? Severity::Note : Severity::Warning, *libraries.begin(),
           fmt::format("{} starts only where the target itself has {}: it does not look where they lie in the "
                       "environment",
                       described(at(program)), several(libraries)),
           at(program).from_wheel ? "nothing, unless this program is used on a bare target"
                                  : "link it with -Wl,-rpath that leads to their folders, from $ORIGIN");
  }

  // ld.so: "version `GLIBCXX_3.4.30' not found (required by ...)". A library without versions is taken as it is.
  void symbol_versions() {
    std::map<std::pair<std::string, std::string>, std::pair<std::set<std::string>, std::set<std::string>>> lacks;
    for (const auto& [edge, provider] : walk_.found) {
      const NativeFile& file = at(edge.first);
      const auto wanted = file.elf.wanted_versions.find(edge.second);
      const std::set<std::string>& offered = at(provider).elf.offered_versions;
      if (wanted == file.elf.wanted_versions.end() || offered.empty()) continue;
      for (const std::string& version : wanted->second) {
        if (offered.contains(version)) continue;
        auto& [versions, who] = lacks[{edge.second, at(provider).path}];
        versions.insert(version);
        who.insert(described(file));
      }
    }
    for (const auto& [library, lack] : lacks)
      find(Kind::SymbolVersion, Severity::Refusal, library.first,
           fmt::format("{} ({}) does not offer {}; wanted by {}", library.first, library.second, several(lack.first),
                       several(lack.second)),
           "carry a newer one, or use a build that was made for an older one");
  }

  // ld.so: "undefined symbol: ...", when the file is loaded, or when a program comes to it. What nothing loads but code
  // that opens it by name may find the symbol in whatever opens it.
  void symbols() {
    for (const auto& [file, names] : unbound_symbols(index_, of_target_)) {
      const bool loaded = is_program(at(file)) || is_extension(at(file)) || used_.contains(file);
      const bool plugin = bundle::is_optional_plugin(at(file).file_name());
      const std::set<std::string> some(names.begin(), names.end());
      find(Kind::UndefinedSymbol,
           plugin   ? Severity::Note
           : loaded ? Severity::Refusal
                    : Severity::Warning,
           {}, fmt::format("{} needs {}, which nothing in the bundle defines", described(at(file)), several(some)),
           loaded
               ? "take builds that were made for each other: the library that defined it is here in another version, "
                 "or not at all"
               : "nothing, if what opens this file by name defines it");
    }
  }

  void glibc_floors() {
    for (const auto& [owner, floors] : report_.floors) {
      const auto glibc = floors.find("GLIBC");
      if (glibc == floors.end()) continue;
      const GlibcVersion needed = glibc->second.version;
      if (target_.glibc < needed)
        find(Kind::GlibcFloor, Severity::Refusal, {},
             fmt::format("{} needs glibc {}, newer than the {} {} ({})", owner, needed.text(),
                         carried_ ? "carried" : "target's", target_.glibc.text(), glibc->second.path),
             carried_ ? "require a version that was built for an older glibc, or pack on a newer distribution"
                      : "require a version that was built for older targets, raise [target].glibc if the targets "
                        "allow it, or carry this machine's glibc: [target] runtime = \"carried\"");
      else if (machine_.glibc < needed)
        find(Kind::GlibcFloor, Severity::Note, {},
             fmt::format("{} needs glibc {}, which is carried; the target has {}", owner, needed.text(),
                         machine_.glibc.text()),
             "nothing");
    }
  }

  // A program that the kernel starts directly gets the target's own loader and glibc, whatever is carried.
  void programs_on_their_own() {
    for (std::size_t i = 0; carried_ && i < index_.size(); ++i) {
      const NativeFile& file = at(i);
      const std::optional<GlibcVersion> needed = file.elf.glibc_floor();
      if (!index_.fits(i) || !is_program(file) || is_launched(file) || !needed || *needed <= machine_.glibc) continue;
      find(Kind::GlibcFloor, file.from_wheel ? Severity::Warning : Severity::Refusal, {},
           fmt::format("{} starts with the target's own glibc {}, but needs {}", described(file), machine_.glibc.text(),
                       needed->text()),
           file.from_wheel
               ? "find out whether the job starts this program; if so, take a version built for older targets"
               : "carry it into bin/, where it is started with the carried glibc");
    }
  }

  void opened_libraries() {
    std::map<std::string, std::set<std::string>> lost;
    std::map<std::string, std::string> why;
    std::map<std::string, std::set<std::string>> unknown;  // libfoo.so, whatever its version
    for (std::size_t i = 0; i < index_.size(); ++i) {
      const NativeFile& file = at(i);
      if (!index_.fits(i)) continue;
      const std::string opener = file.elf.soname.empty() ? file.file_name() : file.elf.soname;
      for (const DlopenRule& rule : dlopen_table()) {
        if (rule.kind != DlopenRule::Kind::Required || !matches(rule.opener, opener)) continue;
        const std::string pattern = opened_by(rule, opener);
        const bool there = std::any_of(index_.names().begin(), index_.names().end(), [&](const auto& name) {
          return matches(pattern, name.first) && in_bundle(name.first);
        });
        if (there) continue;
        lost[pattern].insert(described(file));
        why[pattern] = rule.why;
      }
      for (const std::string& name : file.names)
        if (!is_explained(name, file)) unknown[name.substr(0, name.find(".so") + 3)].insert(described(file));
    }
    for (const auto& [pattern, who] : lost)
      find(Kind::OpenedLibrary, Severity::Refusal, pattern,
           fmt::format("{} is not in the bundle; {} opens it by name ({})", pattern, several(who), why[pattern]),
           "require the package that brings it, of the same version");
    for (const auto& [name, who] : unknown)
      find(Kind::UnknownName, Severity::Warning, name,
           fmt::format("{} may be opened by {}, which contain(s) its name; nothing brings it, and the table of opened "
                       "libraries does not list it",
                       name, several(who)),
           "find out whether the job needs it; if so, require what brings it");
  }

  // The name is needed or its own, is in the bundle in any version or in the same wheel under a new name, belongs to
  // the target, or is in the table.
  bool is_explained(const std::string& name, const NativeFile& file) const {
    if (bundle::belongs_to_target(name) || is_known_to_be_opened(name) || name == file.elf.soname) return true;
    const std::string stem = name.substr(0, name.find(".so") + 3);
    if (renamed_.contains({file.owner, stem})) return true;
    const auto starts = [&](const std::string& other) { return other.starts_with(stem); };
    if (std::any_of(file.elf.needed.begin(), file.elf.needed.end(), starts) || starts(file.elf.soname)) return true;
    const auto first = index_.names().lower_bound(stem);
    return first != index_.names().end() && starts(first->first);
  }

  // A wheel may bring the same helper program for several machines; one without any for this machine is the wrong
  // wheel.
  void architectures() {
    std::set<std::string> owners;  // that have something for the target
    std::map<std::pair<std::string, std::string>, std::set<std::string>> foreign;
    std::set<std::string> imported;
    for (std::size_t i = 0; i < index_.size(); ++i) {
      if (!at(i).fault.empty()) continue;
      if (index_.fits(i)) {
        owners.insert(at(i).owner);
        continue;
      }
      foreign[{at(i).owner, at(i).elf.arch}].insert(described(at(i)));
      if (is_extension(at(i)) || !at(i).from_wheel) imported.insert(at(i).owner);
    }
    for (const auto& [owner, files] : foreign) {
      // A wheel for any machine promises nothing native: its ELF files are data.
      const Severity severity = imported.contains(owner.first)           ? Severity::Refusal
                                : owners.contains(owner.first)           ? Severity::Note
                                : owner.first.ends_with("-none-any.whl") ? Severity::Warning
                                                                         : Severity::Refusal;
      find(Kind::WrongArchitecture, severity, {},
           fmt::format("{} is for {}, the target is {}", several(files), owner.second, target_.arch),
           "use a build for the target");
    }
  }

  void each_file() {
    std::set<std::size_t> providers;
    for (const auto& [edge, provider] : walk_.found) providers.insert(provider);
    for (std::size_t i = 0; i < index_.size(); ++i) {
      const NativeFile& file = at(i);
      if (bundle::is_driver_library(file.file_name()) && ("/" + file.path).find("/stubs/") == std::string::npos)
        find(Kind::DriverLibrary, Severity::Refusal, file.file_name(),
             described(file) + " is a part of the GPU driver, which must be the target's own",
             "leave this package out, and install the driver on the target");
      if (!file.fault.empty())
        find(Kind::Unreadable, is_extension(file) ? Severity::Refusal : Severity::Warning, {},
             described(file) + ": " + file.fault, "use another build, if this file is needed");
      if (!index_.fits(i) || is_program(file)) continue;
      note_cuda(file.elf.soname);
      if (file.elf.executable_stack && file.elf.dynamic)
        find(Kind::ExecutableStack, target_.glibc < kStrictStacks ? Severity::Warning : Severity::Refusal, {},
             described(file) + " asks for an executable stack, which glibc 2.41 and hardened kernels refuse",
             "use a build that was linked with -z noexecstack");
      if (file.elf.text_relocations)
        find(Kind::TextRelocations, Severity::Note, {},
             described(file) + " has text relocations, which hardened kernels refuse", "use a build made with -fPIC");
      if (providers.contains(i) && file.elf.soname.empty())
        find(Kind::NoSoname, Severity::Warning, {},
             described(file) + " is needed by others but has no SONAME, so it may be loaded twice",
             "use a build that was linked with -Wl,-soname");
    }
  }

  void note_cuda(const std::string& soname) {
    static constexpr std::string_view kRuntime = "libcudart.so.";
    if (!soname.starts_with(kRuntime)) return;
    unsigned major = 0;
    const auto [end, fault] = std::from_chars(soname.data() + kRuntime.size(), soname.data() + soname.size(), major);
    if (fault == std::errc()) report_.cuda = std::max(report_.cuda.value_or(0), major);
  }

  void cycles() {
    std::set<std::string> names;
    for (const std::size_t file : on_cycles(walk_)) names.insert(described(at(file)));
    if (!names.empty())
      find(Kind::Circle, Severity::Note, {}, "these need each other in a cycle: " + several(names), "nothing");
  }

  const bundle::Target& machine_;
  const std::vector<std::uint64_t>& of_target_;
  const bool carried_;
  bundle::Target target_;  // with the glibc that programs are loaded with
  NativeIndex index_;
  NativeWalk walk_;
  std::set<std::size_t> used_;                             // loaded by ld.so or through the table
  std::set<std::pair<std::string, std::string>> renamed_;  // owner, former name of one of its libraries
  NativeReport report_;
};

}  // namespace

std::size_t NativeReport::count(Severity severity) const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [severity](const NativeFinding& finding) { return finding.severity == severity; }));
}

NativeReport check_native(const NativeFiles& files, const bundle::Target& target, const std::string& interpreter,
                          const std::optional<bundle::CarriedRuntime>& runtime,
                          const std::vector<std::uint64_t>& of_target) {
  return Check(files, target, interpreter, runtime, of_target).run();
}

}  // namespace sealift::packager
