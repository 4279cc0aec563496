// SPDX-License-Identifier: Apache-2.0
// The page of a container image, at its own name: its tags with sizes and digests, and how to pull them.
#pragma once

#include <string>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/protocols/page_frame.hpp"

namespace sealift::offline_repo {

// `image` is of the catalogue, by `name`. `root` as in repository_page.
std::string image_page(const Catalogue& catalogue, const std::string& name, const ImageRepository& image,
                       const PageAddress& address, const std::string& root, const Words& word);

}  // namespace sealift::offline_repo
