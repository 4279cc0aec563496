// SPDX-License-Identifier: Apache-2.0
// Checks the profile by its sums, and the contents by a plan that is not written. See lock_check.hpp.
#include "packager/pack/lock_check.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "packager/native/driver_floor.hpp"
#include "packager/native/native_report.hpp"
#include "packager/native/profile_check.hpp"
#include "packager/pack/ahead_check.hpp"
#include "packager/pack/contents.hpp"
#include "packager/pack/plan_check.hpp"

namespace sealift::packager {

void check_profile(const Lock& lock, bundle::Progress& progress) {
  std::vector<std::string> names;
  MachineNeeds needs{.bytes = lock.interpreter.size};
  for (const LockedWheel& wheel : lock.wheels) {
    names.push_back(wheel.file_name);
    needs.bytes += wheel.size;  // installed it takes more
    if (const std::optional<unsigned> cuda = cuda_of_wheels({wheel.file_name})) {
      needs.cuda_of = wheel.file_name;
      needs.oldest_cuda = std::min(*cuda, needs.oldest_cuda.value_or(*cuda));
    }
  }
  needs.cuda = cuda_of_wheels(names);
  for (const LockedModel& model : lock.models) needs.bytes += model.size();
  for (const LockedKernel& kernel : lock.kernels) needs.bytes += kernel.size();
  if (lock.runtime) needs.kernel = {lock.runtime->kernel, "the carried glibc"};
  NativeReport report;
  report.findings = profile_findings(needs, lock.target, lock.overruled);
  for (const NativeFinding& finding : report.findings)
    if (finding.severity == Severity::Warning) progress.warn(finding.what + " (" + finding.next + ")");
  require_native(report, lock.target, {});
}

void check_published(const Lock& lock, const Cache& cache, const HttpLogins& logins, SeenAhead& ahead) {
  bundle::Progress silent(nullptr);  // warnings are said once, at the end
  check_profile(lock, silent);
  std::vector<Content> wheels = contents_of(lock);
  std::erase_if(wheels, [](const Content& content) { return content.kind != Content::Kind::Wheel; });
  try {
    check_ahead(lock, wheels, cache, logins, ahead);
  } catch (const bundle::Error& error) {
    if (error.code() != bundle::ErrorCode::Usage && error.code() != bundle::ErrorCode::Missing) throw;
  }
}

void check_contents(const Lock& lock, const Cache& cache, const HttpLogins& logins, SeenAhead& ahead,
                    ToldWarnings& told, bundle::Progress& progress) {
  const auto away = std::count_if(lock.wheels.begin(), lock.wheels.end(),
                                  [&](const LockedWheel& wheel) { return !cache.contains(wheel.sha256); });
  const std::vector<Content> contents = contents_of(lock);
  if (away == 0) {
    for (const Content& content : contents)
      if (const auto* text = std::get_if<FromText>(&content.origin); text != nullptr && !cache.contains(content.sha256))
        cache.keep(text->text, content.sha256);
    const PackPlan plan = plan_pack(lock, contents, {}, cache);
    warn_of_contents(plan, told, progress);
    check_native(plan, cache, {}, told, progress);
  } else if (!check_ahead(lock, contents, cache, logins, ahead)) {
    progress.note("some files could not be looked into before they are fetched: create checks them");
  }
}

}  // namespace sealift::packager
