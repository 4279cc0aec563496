// SPDX-License-Identifier: Apache-2.0
// Reads a table of numbers.
// See expectations.hpp.
// What is wrong in the file is said as a fault of it, since the rest can still be judged.
#include "verify/conduct/expectations.hpp"

#include <algorithm>

namespace sealift::verify {

std::map<std::string, double> expectations_in(const nlohmann::json& expected, const std::string& part,
                                              const std::string& table, const std::vector<std::string>& known,
                                              Culprits& culprits) {
  std::map<std::string, double> numbers;
  if (!expected.is_object() || !expected.contains(part) || !expected.at(part).is_object()) return numbers;
  const auto& of_part = expected.at(part);
  if (!of_part.contains(table)) return numbers;
  const auto place = part + "." + table;
  if (!of_part.at(table).is_object()) {
    culprits.add("site.toml", {"has " + place + ", which is not a table", place + " 不是表"});
    return numbers;
  }
  for (const auto& [name, value] : of_part.at(table).items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      culprits.add("site.toml", {"expects \"" + name + "\" in " + place + ", which no check measures",
                                 place + " 中的 \"" + name + "\" 没有检查项测量"});
    } else if (!value.is_number()) {
      culprits.add("site.toml", {"has no number for " + name, name + " 不是数字"});
    } else {
      numbers[name] = value.get<double>();
    }
  }
  return numbers;
}

}  // namespace sealift::verify
