// SPDX-License-Identifier: Apache-2.0
// What mend prints: which volumes lie where now, and how they are used.
// The keys are an interface; docs/json.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/mend/mend.hpp"

namespace sealift::installer {

bundle::Json json_of(const Mended& mended);
std::string text_of(const Mended& mended);

}  // namespace sealift::installer
