// SPDX-License-Identifier: Apache-2.0
// What preflight prints: one row a check, passed or not, and the sum of them.
// The keys are an interface; README.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/preflight/preflight_run.hpp"

namespace sealift::installer {

bundle::Json json_of(const PreflightRun& result);
std::string text_of(const PreflightRun& result);

}  // namespace sealift::installer
