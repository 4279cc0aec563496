// SPDX-License-Identifier: Apache-2.0
// A settings file as texts by key: TOML, ms-swift's args.json, or the YAML of its examples.
// Between a file and `take_over`, which says what its keys mean here.
#pragma once

#include "trainer/settings/settings.hpp"

namespace sealift::trainer {

/// Reads `path` by its ending: TOML, .json (ms-swift's args.json: null and empty values are as not given) or .yaml and
/// .yml (keys with one value or a list of values; bundle/core/yaml.hpp has the bounds). Throws std::invalid_argument
/// with the place of a fault.
Texts read_config(const std::string& path);

}  // namespace sealift::trainer
