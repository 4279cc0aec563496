// SPDX-License-Identifier: Apache-2.0
// The table first, then the names that name_scan found; see opened_check.hpp.
#include "packager/native/opened_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "packager/libraries/dlopen_table.hpp"
#include "packager/libraries/renamed_libraries.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

using Kind = NativeFinding::Kind;

namespace {

// The files that contain a name.
struct Openers {
  std::set<std::string> files;
  bool of_interpreter = true;  // all of them

  void add(const NativeFile& file) {
    files.insert(described(file));
    of_interpreter = of_interpreter && file.owner == kInterpreterOwner;
  }
  auto operator<=>(const Openers&) const = default;
};

using Renamed = std::set<std::pair<std::string, std::string>>;  // owner, former name of one of its libraries

Renamed renamed_in(const NativeIndex& index) {
  Renamed renamed;
  for (std::size_t i = 0; i < index.size(); ++i)
    for (std::string& name : names_before(index.at(i).file_name())) renamed.emplace(index.at(i).owner, std::move(name));
  return renamed;
}

// The name is needed or its own, is in the bundle in any version or in the same wheel under a new name, belongs to
// the target, or is in the table.
bool is_explained(const std::string& name, const NativeFile& file, const NativeIndex& index, const Renamed& renamed) {
  if (index.is_of_target(name) || is_known_to_be_opened(name) || name == file.elf.soname) return true;
  const std::string stem = name.substr(0, name.find(".so") + 3);
  if (renamed.contains({file.owner, stem})) return true;
  const auto starts = [&](const std::string& other) { return other.starts_with(stem); };
  if (std::any_of(file.elf.needed.begin(), file.elf.needed.end(), starts) || starts(file.elf.soname)) return true;
  const auto first = index.names().lower_bound(stem);
  return first != index.names().end() && starts(first->first);
}

}  // namespace

NativeFindings opened_findings(const NativeIndex& index) {
  const Renamed renamed = renamed_in(index);
  NativeFindings findings;
  std::map<std::string, std::set<std::string>> lost;
  std::map<std::string, std::string> why;
  std::map<std::string, Openers> unknown;  // libfoo.so, whatever its version
  for (std::size_t i = 0; i < index.size(); ++i) {
    const NativeFile& file = index.at(i);
    if (!index.fits(i)) continue;
    const std::string opener = file.elf.soname.empty() ? file.file_name() : file.elf.soname;
    for (const DlopenRule& rule : dlopen_table()) {
      if (rule.kind != DlopenRule::Kind::Required || !matches(rule.opener, opener)) continue;
      const std::string pattern = opened_by(rule, opener);
      const bool there = std::any_of(index.names().begin(), index.names().end(), [&](const auto& name) {
        return matches(pattern, name.first) && index.brings(name.first);
      });
      if (there) continue;
      lost[pattern].insert(described(file));
      why[pattern] = rule.why;
    }
    for (const std::string& name : file.names)
      if (!is_explained(name, file, index, renamed)) unknown[name.substr(0, name.find(".so") + 3)].add(file);
  }
  for (const auto& [pattern, who] : lost)
    findings.push_back(
        {Kind::OpenedLibrary, Severity::Refusal, pattern,
         fmt::format("{} is not in the bundle; {} opens it by name ({})", pattern, several(who), why[pattern]),
         "require the package that brings it, of the same version"});
  std::map<Openers, std::set<std::string>> causes;
  for (const auto& [name, who] : unknown) causes[who].insert(name);
  for (const auto& [who, names] : causes)
    findings.push_back(
        // A distribution's interpreter knows names that nobody can act on: what its modules need is carried with it.
        {Kind::UnknownName, who.of_interpreter ? Severity::Note : Severity::Warning, *names.begin(),
         fmt::format("{} may be opened by {}, which contain(s) the name; nothing brings it, and the table of opened "
                     "libraries does not list it",
                     several(names), several(who.files)),
         "find out whether the job needs it; if so, require what brings it"});
  return findings;
}

}  // namespace sealift::packager
