// SPDX-License-Identifier: Apache-2.0
// What the current environment expects of this machine and no bundle carries: certificate authorities, time zones. For
// the doctor's notes; preflight warns of the same before an installation.
#pragma once

#include <string>
#include <vector>

#include "installer/host/probe.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// One line for each that is not here. Nothing where no generation with an interpreter is current.
std::vector<std::string> machine_notes(const Prefix& prefix, const Machine& machine);

}  // namespace sealift::installer
