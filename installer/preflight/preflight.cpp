// SPDX-License-Identifier: Apache-2.0
// All failures are reported at once: an operator who fixes one a night would need a week.
#include "installer/preflight/preflight.hpp"

#include <algorithm>

#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;
using Verdict = Finding::Verdict;

std::string_view name_of(Verdict verdict) {
  return verdict == Verdict::Ok ? "ok" : verdict == Verdict::Warn ? "warn" : "fail";
}

std::vector<Finding> preflight(const bundle::Manifest& manifest, const Machine& machine,
                               const PrefixFilesystem& filesystem, const InstallPlan& plan, bundle::Time now) {
  std::vector<Finding> findings = machine_findings(manifest, machine, now);
  for (Finding& finding : prefix_findings(filesystem, plan)) findings.push_back(std::move(finding));
  return findings;
}

std::vector<std::string> warnings_of(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings)
    if (finding.verdict == Verdict::Warn)
      lines.push_back("warning: " + finding.check + ": " + finding.facts.what + " (" + finding.facts.got + "); " +
                      finding.facts.next);
  return lines;
}

void refuse_failures(const std::vector<Finding>& findings, const bundle::Manifest& manifest) {
  std::vector<const Finding*> failures;
  for (const Finding& finding : findings)
    if (finding.verdict == Verdict::Fail) failures.push_back(&finding);
  if (failures.empty()) return;
  if (failures.size() == 1) throw Error(failures.front()->code, failures.front()->facts);
  std::string list;
  for (const Finding* failure : failures) {
    const bundle::Facts& facts = failure->facts;
    list += "\n    " + failure->check + ": " + facts.what + "; " +
            (facts.expected.empty() ? "" : "expected " + facts.expected + ", ") + "got " + facts.got +
            "\n      next: " + facts.next;
  }
  throw Error(failures.front()->code,
              {.what = "the bundle cannot be installed here, for " + std::to_string(failures.size()) +
                       " reasons; nothing was written",
               .where = manifest.stem(),
               .got = std::move(list),
               .next = "mend all of them; `sealift-install preflight` asks again without installing"});
}

void check_prefix(const Prefix& prefix) {
  const std::string path = prefix.folder().string();
  if (std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    throw Error(ErrorCode::Usage, {.what = "the prefix's path holds a control character",
                                   .where = bundle::SafePath::printable(path),
                                   .next = "choose another --prefix"});
  if (path.find(':') != path.npos)
    throw Error(ErrorCode::Usage, {.what = "the prefix's path holds a colon, which ends a folder in PATH",
                                   .where = bundle::SafePath::printable(path),
                                   .expected = "a path without one, since no program in it could be found",
                                   .next = "choose another --prefix; nothing was written"});
}

}  // namespace sealift::installer
