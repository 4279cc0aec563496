// SPDX-License-Identifier: Apache-2.0
// A manifest's environment as strict JSON: how its entries become a generation. A part of manifest_json.hpp.
#pragma once

#include "bundle/core/json_object.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle::detail {

// Throws Format.
Environment parse_environment(JsonObject object);

Json environment_json(const Environment& environment);

}  // namespace sealift::bundle::detail
