// SPDX-License-Identifier: Apache-2.0
// Whether the newest accepted root still takes in what is installed.
#pragma once

#include <string>

#include "installer/generations/generation_record.hpp"
#include "sealift/bundle/trust/root.hpp"

namespace sealift::installer {

// Why the root refuses a bundle that is installed: it was withdrawn, a key that signed it was, or its version is below
// the root's floor. Empty when it does not. A key that has no role any more was good when the bundle was installed.
std::string withdrawn_fault(const bundle::Root& root, const GenerationRecord::Bundle& installed);

}  // namespace sealift::installer
