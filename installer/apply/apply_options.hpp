// SPDX-License-Identifier: Apache-2.0
// What an operator asks of apply, as a value. Clock and machine are in it, so that tests can set both.
#pragma once

#include <optional>

#include "installer/host/probe.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/preflight/composition.hpp"
#include "installer/trial/self_check.hpp"
#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::installer {

struct ApplyOptions {
  std::filesystem::path bundle;
  Prefix prefix;
  std::optional<bundle::Digest> fingerprint;  // of the trust root to pin, where none is
  bool allow_downgrade = false;
  bool sandboxed_builds_only = false;
  bool allow_other_name = false;  // a bundle of another name or channel may take the place of the current one
  Additions additions = Additions::Keep;
  bool verify_store = false;  // hash every reused file, stamp or not, and hold the records to the bundle
  bundle::Time now = bundle::system_time();
  Machine machine;
  unsigned threads = 1;
  bool dry_run = false;
  SelfCheckOptions::Depth self_check = SelfCheckOptions::Depth::Full;
  std::vector<bundle::Waiver> waivers = {};  // of native files that do not load
  bool compile_bytecode = false;
  std::vector<std::filesystem::path> volumes = {};  // further folders in which volumes lie
  bundle::VolumeAsker ask = {};                     // for a missing disc
};

}  // namespace sealift::installer
