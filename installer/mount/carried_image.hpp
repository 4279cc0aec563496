// SPDX-License-Identifier: Apache-2.0
// The image that a bundle carries of its environment: which entry it is, and what is said where there is none.
#pragma once

#include <filesystem>

#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// Whether the path is a seal, or a folder with one: then `mount` takes it for a bundle. Nothing of it is read.
bool names_bundle(const std::filesystem::path& path);

// Throws Missing, with the command that makes an image, where the bundle carries none.
const bundle::Entry& carried_image(const bundle::VerifiedBundle& bundle);

}  // namespace sealift::installer
