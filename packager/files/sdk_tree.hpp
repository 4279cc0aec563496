// SPDX-License-Identifier: Apache-2.0
// The C++ core as something that travels: its headers, CMake package, FindLibTorch and licence, out of an installation
// on this machine (`cmake --install BUILD --component headers --prefix DIR`). Gathered by `lock`; it becomes one tar.
// The bundle half stays outside: what is built on the other side trains, and reads no bundles.
#pragma once

#include <filesystem>
#include <string>

#include "packager/files/tree.hpp"

namespace sealift::packager {

struct SdkTree {
  std::string version;  // "0.1.0"
  Tree tree;            // include/sealift/train…, lib/cmake/sealift/…, share/doc/sealift/LICENSE
};

// Of the installation `from`; empty: the running program's own. Throws Missing naming what is not
// there, Format for anything but a file, and for a file larger than any of ours.
SdkTree gather_sdk(const std::filesystem::path& from);

}  // namespace sealift::packager
