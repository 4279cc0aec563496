// SPDX-License-Identifier: Apache-2.0
// May this bundle be installed here, and what should an operator know before? One row a question, each with a verdict
// and a remedy, all of them at once. Pure: manifest, machine, ground and plan come in as values, findings come out.
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
    Warn,  // it can be installed, but something will not work, or only slowly
    Fail,  // it cannot be installed
  };

  std::string check;  // one word: "glibc"
  Verdict verdict = Verdict::Ok;
  bundle::Facts facts;                                   // of an Ok what is expected and got
  bundle::ErrorCode code = bundle::ErrorCode::Platform;  // that a Fail is refused with
};

std::string_view name_of(Finding::Verdict verdict);

// In the order in which an operator would look: machine, GPU, file system, room, surroundings.
std::vector<Finding> preflight(const bundle::Manifest& manifest, const Machine& machine,
                               const PrefixFilesystem& filesystem, const InstallPlan& plan, bundle::Time now);

// The two halves of it.
std::vector<Finding> machine_findings(const bundle::Manifest& manifest, const Machine& machine, bundle::Time now);
std::vector<Finding> prefix_findings(const PrefixFilesystem& filesystem, const InstallPlan& plan);

// A line for each Warn.
std::vector<std::string> warnings_of(const std::vector<Finding>& findings);

// Throws one Error that says every Fail; its code is that of the first one. Nothing happens without a Fail.
void refuse_failures(const std::vector<Finding>& findings, const bundle::Manifest& manifest);

// Throws Usage for a path that would not survive a script. Asked before anything is looked at.
void check_prefix(const Prefix& prefix);

}  // namespace sealift::installer
