// SPDX-License-Identifier: Apache-2.0
// Whether an __init__.py does nothing but make its package a namespace, as pkgutil and pkg_resources had it before
// Python 3.3: azure-*, google-* and hundreds of plugins ship such a file each. In one site-packages all of them mean
// the same, which is nothing, so they are one file, and their package belongs to nobody.
#pragma once

#include <cstddef>
#include <string_view>

namespace sealift::packager {

inline constexpr std::size_t kMaxPathExtension = 8192;  // bytes; most of it is a licence

// True for statements of a closed list alone, comments and a text at the beginning left aside, of which one extends
// the path.
bool only_extends_path(std::string_view source);

}  // namespace sealift::packager
