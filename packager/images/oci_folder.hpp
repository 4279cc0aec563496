// SPDX-License-Identifier: Apache-2.0
// Which image of an OCI folder is meant. A folder may hold several tags, and one tag for several platforms; skopeo
// takes the first of these, whatever the platform, and says of the others that the network is to blame.
#pragma once

#include <filesystem>
#include <string>

#include "packager/images/image_layout.hpp"

namespace sealift::packager {

// What skopeo is given for a source "oci:FOLDER[:TAG]": the source itself, or a folder made below `scratch` whose index
// has the one image of that tag for the platform. Other sources as they are. Throws Usage where nothing says which
// image is meant, Missing for a tag that is not there, Platform where the tag is there for other platforms, each with
// what the folder has.
std::string one_image_of(const std::string& source, const ImagePlatform& platform,
                         const std::filesystem::path& scratch);

}  // namespace sealift::packager
