// SPDX-License-Identifier: Apache-2.0
// Which values are a manifest: the rules of FORMAT.md that one field has for another. The reader asks here once it has
// read every field, so nobody meets a manifest that breaks one. A rule of one field alone is the reader's
// (manifest_json.hpp).
#pragma once

#include <string>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// Throws Format naming the part of `where`, the seal's file name, that breaks a rule.
void check_manifest(const Manifest& manifest, const std::string& where);

}  // namespace sealift::bundle
