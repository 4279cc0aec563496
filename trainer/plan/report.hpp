// SPDX-License-Identifier: Apache-2.0
// A table as JSON, for programs: each row with its parts, volume and times.
// Above table; the verb `plan --json` prints it.
// Numbers in bytes and seconds, so that nobody parses "12.3 GB".
#pragma once

#include "trainer/plan/table.hpp"

#include <nlohmann/json.hpp>

namespace sealift::trainer::plan {

nlohmann::ordered_json to_json(const Row& row);
nlohmann::ordered_json to_json(const Machine& machine);

}  // namespace sealift::trainer::plan
