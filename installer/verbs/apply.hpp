// SPDX-License-Identifier: Apache-2.0
// The story of an installation: trust, verify, look, plan, unpack, build, test, remember, name, switch.
// Until the last rename the environment in use is the old one; a crash anywhere costs only work.
#pragma once

#include "installer/generations/generation.hpp"
#include "installer/preflight/plan.hpp"
#include "installer/preflight/preflight.hpp"
#include "installer/host/probe.hpp"
#include "installer/host/progress.hpp"

namespace sealift::installer {

struct ApplyOptions {
  std::filesystem::path bundle;
  Prefix prefix;
  std::optional<bundle::Digest> fingerprint;  // of the root to pin, where none is
  bool allow_downgrade = false;
  bundle::Time now = bundle::system_time();
  Machine machine;
  unsigned threads = 1;
  bool dry_run = false;
  SelfTestOptions::Depth self_test = SelfTestOptions::Depth::Full;
  bool compile_bytecode = false;
  std::vector<std::filesystem::path> volumes = {};  // further folders in which volumes lie
  bundle::VolumeAsker ask = {};                     // for a disc that is not in
};

struct Applied {
  std::string name;
  std::uint64_t version = 0;
  bundle::Digest identity;
  std::vector<bundle::Digest> signers;
  bundle::RootName root;
  std::vector<std::string> warnings;
  std::vector<Finding> findings;  // of the preflight; none is a Fail
  Plan::Action action = Plan::Action::Install;
  unsigned generation = 0;
  std::vector<std::string> unpacked;  // paths of entries; of a dry run: to be unpacked
  std::vector<std::string> reused;
  std::uint64_t needed_bytes = 0;
  std::uint64_t needed_inodes = 0;
  Room free;                               // before anything was written
  std::optional<GenerationRecord> record;  // of an installation that was not a dry run
};

// Throws the refusal; then `current` is as it was and staging is empty.
Applied apply(const ApplyOptions& options, Disk& disk, Progress& progress);

}  // namespace sealift::installer
