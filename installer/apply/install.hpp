// SPDX-License-Identifier: Apache-2.0
// The middle of apply: from a verified bundle and an install plan to a complete, named generation. `current` is not
// touched here; until apply points it at the result, the environment in use is the old one.
#pragma once

#include "installer/apply/apply_options.hpp"
#include "installer/apply/install_times.hpp"
#include "installer/apply/staging.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/preflight/preflight.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::installer {

struct Installed {
  GenerationRecord record;
  InstallTimes times;
  std::uint64_t hashed = 0;  // files of the store that did not have their stamp and were hashed
};

// Throws the first failure; then the generation has no name, and finished store items wait in staging. `findings` are
// those of the preflight, whose warnings go into the record.
Installed install(const bundle::VerifiedBundle& bundle, const InstallPlan& plan, const ApplyOptions& options,
                  const std::vector<Finding>& findings, const Staging& staging, Disk& disk, bundle::Progress& progress);

}  // namespace sealift::installer
