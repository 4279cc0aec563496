// SPDX-License-Identifier: Apache-2.0
// What probe prints: JSON with what is not known as null, or TOML, to be carried out as a job file's target profile.
// Both come from the same value; only the text can be read back.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/host/probe.hpp"

namespace sealift::installer {

bundle::Json json_of(const Machine& machine);
std::string text_of(const Machine& machine);  // TOML

}  // namespace sealift::installer
