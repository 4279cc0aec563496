// SPDX-License-Identifier: Apache-2.0
// What `export` prints: each folder, with what was written, what was there and what a delta does not carry.
// The keys are an interface; docs/json.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/export/export_bundle.hpp"

namespace sealift::installer {

bundle::Json json_of(const Exported& exported);
std::string text_of(const Exported& exported);

}  // namespace sealift::installer
