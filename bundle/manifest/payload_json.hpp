// SPDX-License-Identifier: Apache-2.0
// A manifest's payload as strict JSON: its volumes, its chunk list, its recovery data. A part of manifest_json.hpp.
#pragma once

#include "bundle/core/json_object.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle::detail {

// Throws Format, or CannotCheck for a digest that a later version may know.
Payload parse_payload(JsonObject object);

Json payload_json(const Payload& payload);

}  // namespace sealift::bundle::detail
