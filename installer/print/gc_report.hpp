// SPDX-License-Identifier: Apache-2.0
// What gc prints: what goes, what stays and why. A dry run prints the same.
// The keys are an interface; README.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/upkeep/gc.hpp"

namespace sealift::installer {

bundle::Json json_of(const Cleanup& cleanup, const GcOptions& options);
std::string text_of(const Cleanup& cleanup, const GcOptions& options);

}  // namespace sealift::installer
