// SPDX-License-Identifier: Apache-2.0
// May this bundle be installed on this machine at all? Asked right after verification, before anything is planned.
// Pure: a manifest and a machine come in, a refusal comes out or nothing.
#pragma once

#include "installer/disk.hpp"
#include "installer/prefix.hpp"
#include "installer/probe.hpp"
#include "sealift/bundle/manifest.hpp"

namespace sealift::installer {

// Throws Platform with what the bundle needs and what the machine has.
void check_target(const bundle::Manifest& manifest, const Machine& machine);

// Throws unless an environment can live below the prefix: Usage for a path that would not survive a script, Platform
// for a file system without links or programs.
void check_prefix(const Prefix& prefix, const Disk& disk);

}  // namespace sealift::installer
