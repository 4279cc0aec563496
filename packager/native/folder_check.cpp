// SPDX-License-Identifier: Apache-2.0
// Folders as the dynamic linker searches them (loader_search.hpp), held against who brings what lies there.
#include "packager/native/folder_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "packager/libraries/dlopen_table.hpp"
#include "packager/libraries/loader_search.hpp"
#include "sealift/bundle/native/system_libraries.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using Kind = NativeFinding::Kind;

namespace {

constexpr std::string_view kPackages = "/site-packages";

// Files of one name in folders that are searched together, and why that is right.
struct SharedName {
  std::string_view name;
  std::string_view why;
};
// Where one of the two is of NVIDIA's packages.
constexpr SharedName kCopiesOfNvidias[] = {
    {"libcu*", "copies of CUDA's libraries (cupti in triton, cudart in many): a soname is one interface"},
    {"libnv*", "copies of CUDA's libraries (nvperf in triton): a soname is one interface"},
    {"libcheckpoint.so*", "a part of cupti; triton has its own copy for its profiler"},
    {"libpcsamplingutil.so*", "a part of cupti; triton has its own copy for its profiler"},
};

// Folders in which several projects have libraries, and why that is right.
struct SharedFolder {
  std::string_view folder;  // below site-packages
  std::string_view projects;
  std::string_view why;
};
constexpr SharedFolder kSharedFolders[] = {
    {"cuquantum/lib", "cu*", "cuQuantum's parts are projects of their own: custatevec, cutensornet, cudensitymat"},
};

// Empty for the interpreter and what a job places itself.
std::string project_of(const NativeFile& file) {
  const auto name = file.from_wheel ? bundle::parse_wheel_name(file.owner) : std::nullopt;
  return name ? bundle::normalized_project_name(name->name) : file.from_wheel ? file.owner : std::string();
}

bool is_nvidias(std::string_view project) {
  return project.starts_with("nvidia-");
}

std::string below_packages(const std::string& folder) {
  const std::size_t at = folder.find(kPackages);
  return at == folder.npos ? folder : folder.substr(std::min(folder.size(), at + kPackages.size() + 1));
}

class Folders {
 public:
  Folders(const NativeIndex& index, const std::string& interpreter) : index_(index), main_(index.find(interpreter)) {
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (!index.fits(i) || is_program(at(i)) || is_extension(at(i))) continue;
      libraries_[at(i).folder()].push_back(i);
      const std::string inner = below_packages(at(i).folder());
      if (inner.starts_with("nvidia/") && inner.ends_with("/lib") && std::count(inner.begin(), inner.end(), '/') == 2)
        listed_by_start_.insert(at(i).folder());
    }
  }

  NativeFindings run() {
    for (std::size_t i = 0; i < index_.size(); ++i)
      if (index_.fits(i)) look_at(i);
    owners();
    return std::move(findings_);
  }

 private:
  const NativeFile& at(std::size_t file) const { return index_.at(file); }

  void look_at(std::size_t file) {
    std::vector<LoadedObject> chain = {{&at(file).elf, at(file).folder()}};
    for (const std::string& folder : search_folders(chain, index_.arch())) searchers_[folder].insert(file);
    if (main_ && *main_ != file && !is_program(at(file))) chain.push_back({&at(*main_).elf, at(*main_).folder()});
    const std::vector<std::string> listed(listed_by_start_.begin(), listed_by_start_.end());
    const std::vector<std::string> folders = search_folders(chain, index_.arch(), listed);
    if (seen_.insert(folders).second) names_in(folders, file);
  }

  // The first file of each name, and those behind it that it hides.
  void names_in(const std::vector<std::string>& folders, std::size_t searcher) {
    std::map<std::string, std::size_t> first;
    for (const std::string& folder : folders) {
      const auto there = libraries_.find(folder);
      if (there == libraries_.end()) continue;
      for (const std::size_t file : there->second) {
        const auto [before, fresh] = first.emplace(at(file).file_name(), file);
        if (!fresh) compare(before->second, file, searcher);
      }
    }
  }

  void compare(std::size_t first, std::size_t second, std::size_t searcher) {
    const std::string one = project_of(at(first)), other = project_of(at(second));
    if (first == second || one == other || one.empty() || other.empty()) return;
    if (at(first).sha256 == at(second).sha256) return;
    const std::string name = at(first).file_name();
    if (bundle::belongs_to_target(name)) return;
    if (is_nvidias(one) || is_nvidias(other))
      for (const SharedName& shared : kCopiesOfNvidias)
        if (matches(shared.name, name)) return;
    if (!told_.emplace(first, second).second) return;
    findings_.push_back({Kind::SameName, Severity::Refusal, name,
                         fmt::format("{} and {} are two libraries of one name in folders that {} searches, and the "
                                     "order of its search path decides which is loaded",
                                     described(at(first)), described(at(second)), described(at(searcher))),
                         "leave one of the two packages out ([python] excludes = [\"NAME\"]), or take versions that "
                         "do not bring it both"});
  }

  void owners() {
    for (const auto& [folder, searchers] : searchers_) {
      const auto there = libraries_.find(folder);
      if (there == libraries_.end() || folder == "lib" || folder.ends_with(kPackages)) continue;
      std::map<std::string, std::size_t> owners;  // project -> one of its files
      for (const std::size_t file : there->second)
        if (const std::string project = project_of(at(file)); !project.empty()) owners.emplace(project, file);
      if (owners.size() > 1 && !may_share(folder, owners)) several_owners(folder, owners, *searchers.begin());
      if (owners.size() == 1) wrong_owner(folder, *owners.begin(), searchers);
    }
  }

  static bool may_share(const std::string& folder, const std::map<std::string, std::size_t>& owners) {
    const auto all = [&](const auto& holds) {
      return std::all_of(owners.begin(), owners.end(), [&](const auto& owner) { return holds(owner.first); });
    };
    if (all([](const std::string& project) { return is_nvidias(project); })) return true;
    return std::any_of(std::begin(kSharedFolders), std::end(kSharedFolders), [&](const SharedFolder& shared) {
      return shared.folder == below_packages(folder) &&
             all([&](const std::string& project) { return matches(shared.projects, project); });
    });
  }

  void several_owners(const std::string& folder, const std::map<std::string, std::size_t>& owners,
                      std::size_t searcher) {
    std::set<std::string> who;
    for (const auto& [project, file] : owners) who.insert(described(at(file)));
    findings_.push_back({Kind::SearchedFolder,
                         Severity::Refusal,
                         {},
                         fmt::format("{} lie in {}, which {} searches: such a folder has one owner", several(who),
                                     below_packages(folder), described(at(searcher))),
                         "leave the package out that has nothing to do there ([python] excludes = [\"NAME\"])"});
  }

  // NAME.libs is where auditwheel puts what it adds to NAME's wheel.
  void wrong_owner(const std::string& folder, const std::pair<const std::string, std::size_t>& owner,
                   const std::set<std::size_t>& searchers) {
    const std::string inner = below_packages(folder);
    if (!inner.ends_with(".libs") || inner.find('/') != inner.npos) return;
    const std::string name = bundle::normalized_project_name(inner.substr(0, inner.size() - 5));
    if (name == owner.first) return;
    for (const std::size_t searcher : searchers) {
      if (project_of(at(searcher)) == owner.first) continue;
      findings_.push_back({Kind::SearchedFolder,
                           Severity::Refusal,
                           {},
                           fmt::format("{} lies in a folder that is {}'s by its name, and {} searches it",
                                       described(at(owner.second)), name, described(at(searcher))),
                           "leave this package out ([python] excludes = [\"" + owner.first + "\"])"});
      return;
    }
  }

  const NativeIndex& index_;
  std::optional<std::size_t> main_;
  std::map<std::string, std::vector<std::size_t>> libraries_;  // folder -> what ld.so can find there
  std::set<std::string> listed_by_start_;                      // as sealift-start lists them
  std::map<std::string, std::set<std::size_t>> searchers_;     // folder -> whose own path names it
  std::set<std::vector<std::string>> seen_;
  std::set<std::pair<std::size_t, std::size_t>> told_;
  NativeFindings findings_;
};

// A search path whose part leads to wherever a program is started, and why nothing is looked for there.
struct KnownPath {
  std::string_view library;
  std::string_view project;
  std::string_view why;
};
constexpr KnownPath kKnownPaths[] = {
    {"libcusparseLt.so.*", "nvidia-cusparselt-*",
     "its path is \"$ORIGIN:\"; it needs the C library, and libgcc_s, which torch has loaded before"},
};

enum class Part { Inside, Empty, Relative, Proc, Absolute };

// `origin` is the file's folder below the generation's root.
Part part_of(std::string_view part, const std::string& origin, const std::string& arch) {
  if (part.empty()) return Part::Empty;
  if (part.starts_with("$ORIGIN") || part.starts_with("${ORIGIN}")) {
    const std::vector<std::string> folders = expand_search_path(part, origin, arch);
    const auto leads_out = [](const std::string& folder) { return folder == ".." || folder.starts_with("../"); };
    return std::any_of(folders.begin(), folders.end(), leads_out) ? Part::Absolute : Part::Inside;
  }
  if (part == "/proc" || part.starts_with("/proc/") || part.starts_with("/dev/")) return Part::Proc;
  return part.front() == '/' ? Part::Absolute : Part::Relative;
}

// For a path that is not empty itself.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string_view path_of(const NativeFile& file) {
  return file.elf.runpath.empty() ? std::string_view(file.elf.rpath) : std::string_view(file.elf.runpath);
}

// Whether ld.so gets to this part for something that the file needs: the parts before do not have it.
bool is_reached(const NativeIndex& index, const NativeFile& file, std::string_view before) {
  for (const std::string& wanted : file.elf.needed) {
    if (index.is_of_target(wanted)) continue;
    const std::vector<std::string> folders = expand_search_path(before, file.folder(), index.arch());
    if (std::none_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return index.find(folder + "/" + wanted).has_value(); }))
      return true;
  }
  return false;
}

bool is_known(const NativeFile& file) {
  const std::string project = project_of(file);
  return std::any_of(std::begin(kKnownPaths), std::end(kKnownPaths), [&](const KnownPath& known) {
    return matches(known.library, file.file_name()) && matches(known.project, project);
  });
}

}  // namespace

NativeFindings folder_findings(const NativeIndex& index, const std::string& interpreter) {
  return Folders(index, interpreter).run();
}

NativeFindings search_path_findings(const NativeIndex& index, const NativeWalk& walk) {
  std::map<Severity, std::map<std::string, std::set<std::string>>, std::greater<>>
      told;  // how the part is called -> files
  std::set<std::string> outside, folders;
  std::set<std::size_t> needed;
  for (const auto& [edge, provider] : walk.found) needed.insert(provider);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const NativeFile& file = index.at(i);
    if (!index.fits(i)) continue;
    const std::string_view path = path_of(file);
    for (const std::string_view part : parts_of(path)) {
      const Part kind = part_of(part, file.folder(), index.arch());
      if (kind == Part::Inside) continue;
      if (kind == Part::Absolute) {
        outside.insert(described(file));
        folders.insert(std::string(part));
        continue;
      }
      const std::string_view before = path.substr(0, static_cast<std::size_t>(part.data() - path.data()));
      const bool loaded = !file.from_wheel || is_program(file) || is_extension(file) || needed.contains(i);
      const bool reached = !file.from_wheel || (is_reached(index, file, before) && !is_known(file));
      told[!reached ? Severity::Note
           : loaded ? Severity::Refusal
                    : Severity::Warning][kind == Part::Empty ? "an empty part" : fmt::format("\"{}\"", part)]
          .insert(described(file));
    }
  }
  NativeFindings findings;
  for (const auto& [severity, parts] : told)
    for (const auto& [part, who] : parts)
      findings.push_back(
          {Kind::SearchPath,
           severity,
           {},
           severity == Severity::Note
               ? fmt::format("the search path of {} has {}, to which nothing that it needs leads", several(who), part)
               : fmt::format("the search path of {} has {}, so libraries are looked for wherever the "
                             "program is started",
                             several(who), part),
           severity == Severity::Refusal
               ? "use a build whose RPATH and RUNPATH begin with $ORIGIN; of a program of your own: "
                 "patchelf --set-rpath"
           : severity == Severity::Warning
               ? "nothing, unless the job has this file loaded; then start it in a folder that is its own"
               : "nothing"});
  if (!outside.empty())
    findings.push_back(
        {Kind::SearchPath,
         Severity::Warning,
         {},
         fmt::format("the search path of {} names folders of the target: {}", several(outside), several(folders)),
         "see that on the targets nobody but root may write there, or that they are not there at all"});
  return findings;
}

}  // namespace sealift::packager
