// SPDX-License-Identifier: Apache-2.0
// Read, judge, report; see plan_check.hpp.
#include "packager/pack/plan_check.hpp"

#include "packager/native/carried_runtime.hpp"
#include "packager/native/native_closure.hpp"
#include "packager/native/native_files.hpp"

namespace sealift::packager {

namespace {

NativeFiles files_of(const PackPlan& plan, const Cache& cache, const Repair& repair, Console& console) {
  std::vector<Content> contents;
  for (const PlannedEntry& entry : plan.entries)
    if (entry.content.kind != Content::Kind::File) contents.push_back(entry.content);
  NativeFiles files = read_native_files(contents, plan.python, cache, repair, console);
  std::erase_if(files.files, [&](const NativeFile& file) {
    const auto out = plan.left_out.find(file.owner);
    return out != plan.left_out.end() && out->second.contains(file.path);
  });
  return files;
}

}  // namespace

NativeReport check_native(const PackPlan& plan, const Cache& cache, const Repair& repair, Console& console) {
  const bundle::Target& target = plan.draft.target;
  const std::optional<bundle::CarriedRuntime>& runtime = plan.draft.environment.runtime;
  const NativeReport report =
      check_native(files_of(plan, cache, repair, console), target, "libexec/python" + plan.python, runtime);
  for (const NativeFinding& finding : report.findings)
    if (finding.severity == Severity::Warning) console.warn(finding.what + " (" + finding.next + ")");
  require_native(report, loaded_with(target, runtime), NativeResolver::system_folders(target.arch));
  console.note(native_summary(report));
  return report;
}

}  // namespace sealift::packager
