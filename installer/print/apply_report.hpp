// SPDX-License-Identifier: Apache-2.0
// What apply and plan print: what was installed, or would be, by whose signatures, and what was checked.
// The keys are an interface; README.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/apply/apply.hpp"

namespace sealift::installer {

bundle::Json json_of(const Applied& applied, const ApplyOptions& options);
std::string text_of(const Applied& applied, const ApplyOptions& options);

}  // namespace sealift::installer
