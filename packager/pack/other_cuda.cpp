// SPDX-License-Identifier: Apache-2.0
// Missing libraries -> the packages that want them -> who asks for those; see other_cuda.hpp.
#include "packager/pack/other_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "packager/resolve/metadata_headers.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/native/system_libraries.hpp"
#include "sealift/bundle/wheel/wheel.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

using Kind = NativeFinding::Kind;

bool is_lost(const NativeFinding& finding) {
  return finding.severity == Severity::Refusal && finding.kind == Kind::MissingLibrary;
}

// One of several plugins for several CUDAs is passed over, so it is no cause (bitsandbytes beside xformers).
bool needs(const NativeFile& file, const std::string& library) {
  if (bundle::is_optional_plugin(file.file_name())) return false;
  return std::find(file.elf.needed.begin(), file.elf.needed.end(), library) != file.elf.needed.end();
}

std::string project_of(const std::string& owner) {
  const auto name = bundle::parse_wheel_name(owner);
  return name ? bundle::normalized_project_name(name->name) : std::string();
}

// "cgraph" of `cupy-cuda12x; sys_platform != "darwin" and extra == "cgraph"`; empty: asked for in any case.
std::string extra_of(const std::string& requirement) {
  const std::size_t at = requirement.find("extra ==");
  const std::size_t open = at == requirement.npos ? at : requirement.find_first_of("\"'", at);
  if (open == requirement.npos) return {};
  return requirement.substr(open + 1, requirement.find(requirement[open], open + 1) - open - 1);
}

// "ray[cgraph]", of each wheel of the plan that requires the project.
std::set<std::string> who_requires(const std::string& project, const PackPlan& plan) {
  std::set<std::string> who;
  for (const PlannedEntry& entry : plan.entries) {
    if (entry.content.kind != Content::Kind::Wheel) continue;
    try {
      bundle::FileSource source(entry.file);
      const bundle::Wheel wheel(source, entry.content.owner, entry.content.startup_files);
      for (const std::string& line : MetadataHeaders(wheel.metadata()).all("Requires-Dist")) {
        const std::string name = line.substr(0, line.find_first_of(" \t[(<>=!~;@"));
        if (bundle::normalized_project_name(name) != project) continue;
        const std::string extra = extra_of(line);
        who.insert(project_of(entry.content.owner) + (extra.empty() ? "" : "[" + extra + "]"));
      }
    } catch (const bundle::Error&) {  // what is wrong with a wheel is said elsewhere
    }
  }
  return who;
}

std::string remedy(const std::string& project, unsigned its, std::optional<unsigned> carried, const PackPlan& plan) {
  std::string asked;
  for (const std::string& one : who_requires(project, plan)) asked += (asked.empty() ? "" : ", ") + one;
  const std::string has = carried ? fmt::format("CUDA {}", *carried) : "none";
  const std::string other =
      carried
          ? fmt::format("take a build for CUDA {}", *carried)
          : fmt::format(
                "require what brings CUDA {} (nvidia-cuda-runtime{}), carry this machine's as a [[program]] into lib/",
                its, its < 13 ? fmt::format("-cu{}", its) : "");
  return fmt::format(
      "{} is for CUDA {}, and the bundle carries {}; {}. Leave that out, {}, or say in the job file:\n         "
      "[python]\n         excludes = [{}]",
      project, its, has, asked.empty() ? "the job asks for it" : "asked for by " + asked, other, toml_quoted(project));
}

}  // namespace

std::optional<unsigned> cuda_of_library(std::string_view name) {
  for (const std::string_view stem :
       {"libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libnvrtc.so.", "libnvJitLink.so.", "libcupti.so."}) {
    if (!name.starts_with(stem)) continue;
    const std::string_view number = name.substr(stem.size());
    unsigned major = 0;
    const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), major);
    if (fault == std::errc()) return major;
  }
  return std::nullopt;
}

void name_other_cuda(NativeReport& report, const NativeFiles& files, const PackPlan& plan) {
  std::map<std::string, unsigned> packages;  // owner -> its CUDA
  for (const NativeFinding& finding : report.findings) {
    const std::optional<unsigned> cuda = is_lost(finding) ? cuda_of_library(finding.library) : std::nullopt;
    if (!cuda || cuda == report.cuda) continue;
    for (const NativeFile& file : files.files)
      if (file.from_wheel && needs(file, finding.library)) packages.emplace(file.owner, *cuda);
  }
  if (packages.empty()) return;
  std::set<std::string> told;
  for (NativeFinding& finding : report.findings) {
    if (!is_lost(finding)) continue;
    for (const NativeFile& file : files.files) {
      const auto package = packages.find(file.owner);
      if (package == packages.end() || !needs(file, finding.library)) continue;
      const std::string project = project_of(file.owner);
      finding.next = told.insert(project).second ? remedy(project, package->second, report.cuda, plan)
                                                 : "as it is said above of " + project;
      break;
    }
  }
}

}  // namespace sealift::packager
