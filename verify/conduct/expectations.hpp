// SPDX-License-Identifier: Apache-2.0
// Numbers that a site expects in site.toml.
// Between the site's file and the judges of rates.
// A misspelt expectation is a fault of the file and not silently none.
#pragma once

#include "verify/conduct/culprits.hpp"

#include <nlohmann/json.hpp>

#include <map>

namespace sealift::verify {

/// The numbers that site.toml has in `table` under `part`, by name; accuses the file of names that are not `known` and
/// of values other than numbers.
std::map<std::string, double> expectations_in(const nlohmann::json& expected, const std::string& part,
                                              const std::string& table, const std::vector<std::string>& known,
                                              Culprits& culprits);

}  // namespace sealift::verify
