// SPDX-License-Identifier: Apache-2.0
// Which files of a bundle locked images become: their blobs, each once, and the signed list of them. None of them is
// placed in a generation: who serves or exports images reads them out of the bundle.
#pragma once

#include <vector>

#include "packager/content/content.hpp"
#include "packager/tables/image.hpp"

namespace sealift::packager {

std::vector<Content> contents_of(const std::vector<LockedImage>& images);

}  // namespace sealift::packager
