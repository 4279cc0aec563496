// SPDX-License-Identifier: Apache-2.0
// The story of an installation: trust -> verify -> prefix lock -> plan -> preflight -> install -> switch.
// Until the last rename the environment in use is the old one; a crash anywhere costs only work.
#pragma once

#include <optional>

#include "installer/apply/apply_options.hpp"
#include "installer/apply/install_times.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/preflight/plan.hpp"
#include "installer/preflight/preflight.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::installer {

struct Applied {
  std::string name;
  std::uint64_t version = 0;
  bundle::Digest identity;
  std::vector<bundle::Digest> signers;
  bundle::RootName root;
  std::vector<std::string> warnings;
  std::vector<Finding> findings;  // of the preflight; none is a Fail
  InstallPlan::Action action = InstallPlan::Action::Install;
  std::optional<std::string> added_to;          // of a bundle that was added: the environment, for people
  std::vector<GenerationRecord::Bundle> added;  // all that the generation has beside the bundle that made it
  unsigned generation = 0;
  std::vector<std::string> unpacked;  // paths of entries; of a dry run: to be unpacked
  std::vector<std::string> reused;
  std::uint64_t needed_bytes = 0;
  std::uint64_t needed_inodes = 0;
  FreeSpace free;                            // before anything was written
  std::uint64_t chunks = 0;                  // of the payload
  std::uint64_t chunks_read = 0;             // of those, were read and right; the others this run had no need of
  std::vector<bundle::MendedVolume> mended;  // what was damaged on the medium, and is right in the prefix
  std::uint64_t hashed = 0;                  // reused files that were hashed, since their stamps did not match
  InstallTimes times;                        // of an installation
  std::optional<GenerationRecord> record;    // of an installation that was not a dry run
};

// Throws the refusal; then `current` is as it was and staging is empty.
Applied apply(const ApplyOptions& options, Disk& disk, bundle::Progress& progress);

}  // namespace sealift::installer
