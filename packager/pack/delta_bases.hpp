// SPDX-License-Identifier: Apache-2.0
// Which bundles a delta can be rehearsed on: those beside it that carry what it leaves out.
#pragma once

#include <filesystem>
#include <vector>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

// Of the bundles in `folder`, each in a folder of its own, as few as carry all that `delta` does not carry or patches,
// oldest first; empty where they do not. Bundles that the root with this fingerprint does not vouch for are passed
// over. No payload is read.
std::vector<std::filesystem::path> delta_bases(const bundle::Manifest& delta, const std::filesystem::path& folder,
                                               const bundle::Digest& fingerprint);

}  // namespace sealift::packager
