// SPDX-License-Identifier: Apache-2.0
// How a judge says who is wrong: each accusation names a rank and how that is known.
// Used by the judging halves that compare ranks with each other.
// All are named in `at_fault`, and the first few in the reason, which must be readable for a thousand ranks.
#pragma once

#include "verify/conduct/check_kind.hpp"

#include <algorithm>
#include <map>

namespace sealift::verify {

/// "rank 3 on gpu07 (cuda:3)"
inline std::string name_of(const Measured& measured) {
  return "rank " + std::to_string(measured.rank) + " on " + measured.host + " (" + measured.device + ")";
}

inline bool has_values(const Measured& measured) {
  return !measured.not_run && !measured.error && measured.values.is_object();
}

/// Someone who is wrong, and how that is known: "is slow" follows the name.
struct Accusation {
  std::string who;
  Sentence how;
};

/// Fails `check` with all that are accused; the reason says the first three accusations.
inline void accuse(const std::vector<Accusation>& accused, Check& check) {
  constexpr std::size_t kSaid = 3;
  check.outcome = Outcome::Fail;
  for (std::size_t i = 0; i < accused.size(); ++i) {
    const auto& [who, how] = accused[i];
    if (std::find(check.at_fault.begin(), check.at_fault.end(), who) == check.at_fault.end()) {
      check.at_fault.push_back(who);
    }
    if (i >= kSaid) continue;
    check.reason.en += (i ? "; " : "") + who + " " + how.en;
    check.reason.zh += (i ? "；" : "") + who + " " + how.zh;
  }
  if (accused.size() <= kSaid) return;
  const auto more = std::to_string(accused.size() - kSaid);
  check.reason.en += "; and " + more + " more";
  check.reason.zh += "；另有 " + more + " 项";
}

/// The numbers that site.toml has in `table` under a part, by name; accuses the file of names that are not `known` and
/// of what is no number, so that a misspelt expectation is not silently none.
inline std::map<std::string, double> expectations_in(const nlohmann::json& expected, const std::string& part,
                                                     const std::string& table, const std::vector<std::string>& known,
                                                     std::vector<Accusation>& accused) {
  std::map<std::string, double> numbers;
  if (!expected.is_object() || !expected.contains(part) || !expected.at(part).is_object()) return numbers;
  const auto& of_part = expected.at(part);
  if (!of_part.contains(table)) return numbers;
  if (!of_part.at(table).is_object()) {
    accused.push_back(
        {"site.toml", {"has " + part + "." + table + ", which is no table", "的 " + part + "." + table + " 不是表"}});
    return numbers;
  }
  for (const auto& [name, value] : of_part.at(table).items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      accused.push_back({"site.toml",
                         {"expects \"" + name + "\" in " + part + "." + table + ", which no check measures",
                          "的 " + part + "." + table + " 中 \"" + name + "\" 没有检查项测量"}});
    } else if (!value.is_number()) {
      accused.push_back({"site.toml", {"has no number for " + name, "中 " + name + " 不是数字"}});
    } else {
      numbers[name] = value.get<double>();
    }
  }
  return numbers;
}

}  // namespace sealift::verify
