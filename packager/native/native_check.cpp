// SPDX-License-Identifier: Apache-2.0
// Judges what native_walk found; see native_check.hpp. One finding for each library or component, not for each file.
#include "packager/native/native_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "packager/libraries/carried_runtime.hpp"
#include "packager/native/file_check.hpp"
#include "packager/native/folder_check.hpp"
#include "packager/native/native_walk.hpp"
#include "packager/native/opened_check.hpp"
#include "packager/native/symbol_check.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

using bundle::GlibcVersion;
using Kind = NativeFinding::Kind;

namespace {

class Check {
 public:
  Check(const NativeFiles& files, const bundle::Target& target, const std::string& interpreter,
        const std::optional<bundle::CarriedRuntime>& runtime, const std::vector<std::uint64_t>& of_target)
      : machine_(target),
        of_target_(of_target),
        carried_(runtime.has_value()),
        target_(loaded_with(target, runtime)),
        index_(files, target.arch),
        walk_(walk_native(index_, interpreter, runtime.has_value())),
        interpreter_(interpreter) {
    report_.files = index_.size();
    report_.needed = walk_.needed;
    report_.floors = symbol_floors(files, target.arch);
    report_.cuda = carried_cuda(index_);
    used_ = walk_.opened;
    for (const auto& [edge, provider] : walk_.found) used_.insert(provider);
  }

  NativeReport run() {
    needed_libraries();
    program_gaps();
    symbol_versions();
    symbols();
    glibc_floors();
    programs_on_their_own();
    take(opened_findings(index_));
    take(architecture_findings(index_));
    take(file_findings(index_, walk_, target_.glibc));
    take(folder_findings(index_, interpreter_));
    take(search_path_findings(index_, walk_));
    cycles();
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const NativeFinding& a, const NativeFinding& b) { return a.severity > b.severity; });
    return std::move(report_);
  }

 private:
  void find(Kind kind, Severity severity, std::string library, std::string what, std::string next) {
    report_.findings.push_back({kind, severity, std::move(library), std::move(what), std::move(next)});
  }
  void take(NativeFindings more) {
    report_.findings.insert(report_.findings.end(), std::make_move_iterator(more.begin()),
                            std::make_move_iterator(more.end()));
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
      find(Kind::MissingLibrary, Severity::Refusal, library, what,
           "its builder linked a library without SONAME, so the loader looks at that very path; use another build");
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
        if (index_.is_of_target(library) || walk_.found.contains({file, wanted})) continue;
        const bool plugin = bundle::is_optional_plugin(at(file).file_name());
        (index_.brings(wanted) ? before
         : plugin              ? optional
         : is_stray(file)      ? stray
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
      if (index_.brings(gap.wanted))
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
    std::map<std::pair<std::string, std::string>, std::pair<std::set<std::string>, std::set<std::string>>> lacks,
        plugins;
    for (const auto& [edge, provider] : walk_.found) {
      const NativeFile& file = at(edge.first);
      const auto wanted = file.elf.wanted_versions.find(edge.second);
      const std::set<std::string>& offered = at(provider).elf.offered_versions;
      if (wanted == file.elf.wanted_versions.end() || offered.empty()) continue;
      for (const std::string& version : wanted->second) {
        if (offered.contains(version)) continue;
        const bool plugin = bundle::is_plugin_of_other_hosts(file.file_name());
        auto& [versions, who] = (plugin ? plugins : lacks)[{edge.second, at(provider).path}];
        versions.insert(version);
        who.insert(described(file));
      }
    }
    const auto told = [](const auto& library, const auto& lack) {
      return fmt::format("{} ({}) does not offer {}; wanted by {}", library.first, library.second, several(lack.first),
                         several(lack.second));
    };
    for (const auto& [library, lack] : lacks)
      find(Kind::SymbolVersion, Severity::Refusal, library.first, told(library, lack),
           "carry a newer one, or use a build that was made for an older one");
    for (const auto& [library, lack] : plugins)
      find(Kind::SymbolVersion, Severity::Note, library.first, told(library, lack),
           "nothing, unless the site uses this plugin");
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

  // What only another kind of host opens says nothing of this one.
  void plugin_floors() {
    for (std::size_t i = 0; i < index_.size(); ++i) {
      const std::optional<GlibcVersion> needed = at(i).elf.glibc_floor();
      if (!index_.fits(i) || !needed || *needed <= target_.glibc ||
          !bundle::is_plugin_of_other_hosts(at(i).file_name()))
        continue;
      find(Kind::GlibcFloor, Severity::Note, {},
           fmt::format("{} needs glibc {}, newer than the {} {}", described(at(i)), needed->text(),
                       carried_ ? "carried" : "target's", target_.glibc.text()),
           "nothing, unless the site uses this plugin");
    }
  }

  void glibc_floors() {
    plugin_floors();
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
  const std::string& interpreter_;
  std::set<std::size_t> used_;  // loaded by ld.so or through the table
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
