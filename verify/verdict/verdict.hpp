// SPDX-License-Identifier: Apache-2.0
// All that a site files: who, where, with which bundle, at which level, and every check.
// Made by `run` on rank 0; report.json is its JSON, the pages are drawn from it, `diff` compares two of them.
// The verdict is computed from the checks and never stored apart from them.
#pragma once

#include "verify/verdict/check.hpp"

namespace sealift::verify {

/// The bundle that the running generation came from, as its signed manifest names it.
struct BundleIdentity {
  std::string name, version, manifest_sha256;
  std::vector<std::string> signers;  ///< key ids
  bool operator==(const BundleIdentity&) const = default;
};

/// The machines that took part.
struct Node {
  std::string host;
  std::vector<std::int64_t> ranks;
  std::vector<std::string> devices;  ///< "cuda:0 NVIDIA H100 80GB HBM3", or "cpu"
  bool operator==(const Node&) const = default;
};

struct Verdict {
  std::string site;  ///< what the site calls itself
  Level level = Level::Quick;
  std::string started, finished;         ///< UTC, 2026-01-31T12:00:00Z
  std::string program;                   ///< version of sealift-verify and of LibTorch
  std::optional<BundleIdentity> bundle;  ///< nothing: not run from an installed generation
  std::vector<Node> nodes;
  std::vector<Check> checks;
  bool operator==(const Verdict&) const = default;
};

/// Fail if any check failed; else NotRun if none passed; else Pass. Checks that were not run do not fail a site, but
/// the first page names each of them.
Outcome outcome_of(const Verdict& verdict);

/// Why a run does not make a check of a later level, and one that `--only` does not name: it was not asked for.
Phrase part_of_level(Level level);
Phrase left_out_by_only();

/// The checks without a result, in their order.
struct WithoutResult {
  std::vector<std::string> asked;    ///< names: the run was to make them and could not
  std::vector<std::string> unasked;  ///< names: of a later level, or left out by `--only`
};
WithoutResult not_run(const Verdict& verdict);

}  // namespace sealift::verify
