// SPDX-License-Identifier: Apache-2.0
// The install plan: what `apply` would do, as a value that can be printed. Which entries are new, which the store has,
// the space they need. Planning reads the prefix and changes nothing; the installation works from the same value.
#pragma once

#include <optional>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/preflight/composition.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct InstallPlan {
  enum class Action {
    Install,   // unpack what is new, build a generation, make it current
    SwitchTo,  // this very bundle is installed as an older generation; make that one current
    Nothing,   // this very bundle is current
  };

  Action action = Action::Install;
  unsigned generation = 1;                   // that becomes current
  std::optional<bundle::Stream> current;     // what is current now; nothing too when its record cannot be read
  bool loses_interpreter = false;            // what is current has one, and the bundle brings none
  GenerationRecord record = {};              // what the generation consists of: the bundle, and what is added
  bool adds = false;                         // the bundle is added to what is current
  std::vector<const bundle::Entry*> unpack;  // point into the bundle's manifest
  std::vector<const bundle::Entry*> reuse;   // are in the store already
  std::uint64_t needed_bytes = 0;            // with a margin for folders and records
  std::uint64_t needed_inodes = 0;
  FreeSpace free;
};

std::string_view name_of(InstallPlan::Action action);

struct PlanOptions {
  bool compile_bytecode = false;  // count space for compiled modules
  Additions additions = Additions::Keep;
};

// Throws Missing, listing all of them, when the bundle is a delta and the store lacks entries that it does not carry,
// or when it lacks entries that the current generation keeps; and Conflict as composed does.
InstallPlan make_plan(const bundle::VerifiedBundle& bundle, const Prefix& prefix, const Disk& disk,
                      const PlanOptions& options);

}  // namespace sealift::installer
