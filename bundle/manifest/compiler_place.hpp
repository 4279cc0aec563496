// SPDX-License-Identifier: Apache-2.0
// Where the launcher of a carried C compiler lies, if a bundle has one; CC names it. The packager places it, preflight
// asks for it. Not in bin, where it would be taken for the host's.
#pragma once

#include <string_view>

namespace sealift::bundle {

inline constexpr std::string_view kCompilerPlace = "libexec/sealift/cc";           // below a generation's root
inline constexpr std::string_view kCompilerEntry = "programs/libexec/sealift/cc";  // its path in the bundle

}  // namespace sealift::bundle
