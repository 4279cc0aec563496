// SPDX-License-Identifier: Apache-2.0
// The preflight: can this bundle be installed here, and what should an operator know before? One finding a check, with
// a verdict and a remedy, all of them at once. Pure: from manifest, machine, file system and plan to findings.
#pragma once

#include <vector>

#include "installer/host/probe.hpp"
#include "installer/preflight/plan.hpp"
#include "installer/preflight/prefix_filesystem.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::installer {

struct Finding {
  enum class Verdict {
    Ok,
    Warn,  // it can be installed, but something will fail or be slow
    Fail,  // it cannot be installed
  };

  std::string check;  // one word: "glibc"
  Verdict verdict = Verdict::Ok;
  bundle::Facts facts;                                   // of an Ok only expected and got
  bundle::ErrorCode code = bundle::ErrorCode::Platform;  // of the refusal, for a Fail
};

std::string_view name_of(Finding::Verdict verdict);

// In an operator's order: machine, GPU, file system, space, surroundings.
std::vector<Finding> preflight(const bundle::Manifest& manifest, const Machine& machine,
                               const PrefixFilesystem& filesystem, const InstallPlan& plan, bundle::Time now);

// Its two halves.
std::vector<Finding> machine_findings(const bundle::Manifest& manifest, const Machine& machine, bundle::Time now);
std::vector<Finding> prefix_findings(const PrefixFilesystem& filesystem, const InstallPlan& plan);

// A line for each Warn.
std::vector<std::string> warnings_of(const std::vector<Finding>& findings);

// Throws one Error that lists every Fail, with the code of the first one; nothing without a Fail.
void refuse_failures(const std::vector<Finding>& findings, const bundle::Manifest& manifest);

// Throws Usage for a path with control characters, which scripts could not handle, or a colon, which PATH cannot.
// Called before anything else.
void check_prefix(const Prefix& prefix);

}  // namespace sealift::installer
