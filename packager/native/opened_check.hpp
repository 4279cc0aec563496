// SPDX-License-Identifier: Apache-2.0
// Libraries that code opens by name, which no ELF header says: libraries that the table requires, and names in files
// that nothing in the bundle explains. Pure.
#pragma once

#include "packager/native/native_finding.hpp"
#include "packager/native/native_walk.hpp"

namespace sealift::packager {

NativeFindings opened_findings(const NativeIndex& index);

}  // namespace sealift::packager
