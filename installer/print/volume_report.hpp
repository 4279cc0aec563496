// SPDX-License-Identifier: Apache-2.0
// What `verify --volume` prints: that one volume is whole, or which of its bytes are bad and what they belong to.
// The keys are an interface; docs/json.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/preflight/volume_check.hpp"

namespace sealift::installer {

bundle::Json json_of(const VolumeCheck& check);
std::string text_of(const VolumeCheck& check);  // of a whole volume; failures go to stderr one by one

}  // namespace sealift::installer
