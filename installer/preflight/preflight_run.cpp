// SPDX-License-Identifier: Apache-2.0
// The manifest's signatures are checked here, the payload is not: an answer takes a second, whatever the size.
#include "installer/preflight/preflight_run.hpp"

#include <fcntl.h>

#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

using Verdict = Finding::Verdict;

PreflightRun run_preflight(const PreflightOptions& options, const Disk& disk) {
  check_prefix(options.prefix);
  const PrefixFilesystem filesystem = probe_prefix_filesystem(options.prefix, disk);
  const bundle::Trust trust{.state = bundle::trust_for_run(options.prefix.trust(), options.fingerprint),
                            .allow_downgrade = options.allow_downgrade,
                            .sandboxed_builds_only = options.sandboxed_builds_only};
  const bundle::VerifiedBundle bundle = bundle::verify(bundle::open(options.bundle), trust, options.now);
  const InstallPlan plan = make_plan(bundle, options.prefix, disk, {.compile_bytecode = options.compile_bytecode});
  return {.name = bundle.manifest().name,
          .version = bundle.manifest().version,
          .prefix = options.prefix.folder().string(),
          .warnings = bundle.warnings(),
          .findings = preflight(bundle.manifest(), options.machine, filesystem, plan, options.now)};
}

int exit_code_of(const PreflightRun& result) {
  for (const Finding& finding : result.findings)
    if (finding.verdict == Verdict::Fail) return static_cast<int>(finding.code);
  return 0;
}

}  // namespace sealift::installer
