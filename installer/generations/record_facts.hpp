// SPDX-License-Identifier: Apache-2.0
// The audit and the self-check of a generation in words, for receipts and for everything that is printed about one.
// Below both, so that they cannot differ.
#pragma once

#include <string>

#include "installer/layout/audit.hpp"
#include "installer/trial/self_check.hpp"

namespace sealift::installer {

std::string facts_of(const Audit& audit);  // one line
std::string facts_of(
    const SelfCheck& check);  // the imports, then a line for each step and waiver, without a final line break

}  // namespace sealift::installer
