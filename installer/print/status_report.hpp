// SPDX-License-Identifier: Apache-2.0
// What status prints: every generation of a prefix with what its record says, and the last one that failed its
// self-check. The keys are an interface; README.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/upkeep/status.hpp"

namespace sealift::installer {

bundle::Json json_of(const Status& status);
std::string text_of(const Status& status);

}  // namespace sealift::installer
