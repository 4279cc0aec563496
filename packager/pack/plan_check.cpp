// SPDX-License-Identifier: Apache-2.0
// Read, judge, report; see plan_check.hpp.
#include "packager/pack/plan_check.hpp"

#include <algorithm>

#include "packager/libraries/carried_runtime.hpp"
#include "packager/libraries/native_closure.hpp"
#include "packager/native/native_cache.hpp"
#include "packager/native/native_files.hpp"
#include "packager/native/profile_check.hpp"
#include "packager/native/symbol_check.hpp"
#include "packager/pack/other_cuda.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

NativeFiles files_of(const PackPlan& plan, const Cache& cache, const Repair& repair, bundle::Progress& progress) {
  std::vector<Content> contents;
  for (const PlannedEntry& entry : plan.entries)
    if (entry.content.kind != Content::Kind::File) contents.push_back(entry.content);
  NativeFiles files = read_native_files(contents, plan.python, cache, repair, progress);
  files.of_host = plan.host_libraries;
  std::erase_if(files.files, [&](const NativeFile& file) {
    const auto out = plan.left_out.find(file.owner);
    return out != plan.left_out.end() && out->second.contains(file.path);
  });
  return files;
}

// What the profile's machine lacks joins the findings, the most severe first.
void add_profile(NativeReport& report, const NativeFiles& files, const PackPlan& plan) {
  MachineNeeds needs = machine_needs(files, plan.profile.arch, report.cuda);
  if (const auto& runtime = plan.draft.environment.runtime) needs.kernel = {runtime->kernel, "the carried glibc"};
  for (const PlannedEntry& entry : plan.entries) needs.bytes += entry.draft.installed_size;
  report.gpu_code = gpu_code_of(needs);
  for (NativeFinding& finding : profile_findings(needs, plan.profile, plan.draft.overruled))
    report.findings.push_back(std::move(finding));
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const NativeFinding& a, const NativeFinding& b) { return a.severity > b.severity; });
}

}  // namespace

NativeReport check_native(const PackPlan& plan, const Cache& cache, const Repair& repair, ToldWarnings& told,
                          bundle::Progress& progress) {
  const bundle::Target& target = plan.draft.target;
  const std::optional<bundle::CarriedRuntime>& runtime = plan.draft.environment.runtime;
  const std::vector<fs::path> folders = NativeResolver::folders_of(plan.system, target.arch);
  const NativeFiles files = files_of(plan, cache, repair, progress);
  NativeReport report =
      check_native(files, target, "libexec/python" + plan.python, runtime, glibc_symbols(target.arch, folders));
  add_profile(report, files, plan);
  name_other_cuda(report, files, plan);
  for (const NativeFinding& finding : report.findings)
    if (finding.severity == Severity::Warning) told.warn(finding.what + " (" + finding.next + ")", progress);
  require_native(report, loaded_with(target, runtime), folders);
  progress.note(native_summary(report));
  return report;
}

void warn_of_contents(const PackPlan& plan, ToldWarnings& told, bundle::Progress& progress) {
  for (const std::string& file : plan.unused)
    told.warn("two wheels bring a file that differs and that nobody uses: " + file, progress);
  for (const std::string& wheel : plan.misdescribed)
    told.warn("the RECORD of " + wheel +
                  " does not describe the files, as published; the bytes are the locked ones, and the installed "
                  "RECORD will describe them",
              progress);
}

void keep_checked(const PackPlan& plan, const Cache& cache) {
  const NativeCache kept(cache, plan.python);
  for (const PlannedEntry& entry : plan.entries)
    if (entry.content.kind == Content::Kind::Wheel && !entry.draft.absent &&
        entry.draft.encoding == bundle::Encoding::Identity)
      kept.confirm(entry.content.sha256);
}

}  // namespace sealift::packager
