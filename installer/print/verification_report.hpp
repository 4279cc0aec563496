// SPDX-License-Identifier: Apache-2.0
// What verify prints: what a bundle is and that every byte was read, or everything that is wrong with it.
// The keys are an interface; README.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/preflight/verification.hpp"

namespace sealift::installer {

bundle::Json json_of(const bundle::Damage& damage);
bundle::Json json_of(const Verification& verification);
std::string text_of(const Verification& verification);  // of a whole bundle; failures go to stderr one by one

}  // namespace sealift::installer
