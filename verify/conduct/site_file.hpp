// SPDX-License-Identifier: Apache-2.0
// site.toml: what a site says of itself and expects. TOML in, a JSON object out; each check reads its own table of it.
// First in `run`.
// Unknown names and values of another kind are refused, so that a misspelt expectation is not silently none.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace sealift::verify {

/// Reads `path`. Throws std::invalid_argument with file, line and what is wrong.
nlohmann::json read_site_file(const std::string& path);

}  // namespace sealift::verify
