// SPDX-License-Identifier: Apache-2.0
// A payload as an OCI image archive: the documents that make a registry's tools accept the blobs of a bundle.
// Format: OCI image-spec 1.1, "Image Layout" and "Guidelines for Artifact Usage".
#pragma once

#include <string>
#include <string_view>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kOciLayoutText = R"({"imageLayoutVersion":"1.0.0"})";  // the member oci-layout
inline constexpr std::string_view kOciConfigText = "{}";  // a blob: there is nothing to say

// The image: layers are in entry order, each named by its path, as in OCI artifacts. An absent entry is no layer. An
// image without layers lists the empty blob as one, as the specification asks.
std::string oci_image_text(const Manifest& manifest);

// The member index.json, which names the image by `name`.
std::string oci_index_text(const std::string& image, const std::string& name);

}  // namespace sealift::bundle
