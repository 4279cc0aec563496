// SPDX-License-Identifier: Apache-2.0
// The limits of slowness, and what is read off all ranks.
// See all_ranks.hpp.
// Limits are wide on CPUs, whose ranks share their host with other work, and narrow where nobody shares.
#include "verify/communication/all_ranks.hpp"

#include "verify/communication/plan.hpp"
#include "verify/verdict/json.hpp"

#include <algorithm>
#include <set>

namespace sealift::verify {
namespace {

/// How much slower than its equals one may be before it is named. CPU ranks of one host share cores with each other
/// and with whatever else runs; a network between hosts they share less; a GPU's link nobody shares.
constexpr double kFloorOfOneHost = 0.8, kFloorOfHosts = 0.5, kFloorOfDevices = 0.3;
/// What is less slower than this may be the host's scheduler, whatever the ratio; s.
constexpr double kNoiseOfOneHost = 0.1, kNoiseOfHosts = 0.02, kNoiseOfDevices = 0.0005;

}  // namespace

void take_facts(const std::vector<Measured>& all, Check& check) {
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& fact : measured.values.at("facts")) {
      const Fact read{phrase_from(fact.at(0)), phrase_from(fact.at(1))};
      if (std::find(check.facts.begin(), check.facts.end(), read) == check.facts.end()) check.facts.push_back(read);
    }
  }
}

bool on_cpu(const std::vector<Measured>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Measured& m) { return has_values(m) && m.values.at("cpu") == true; });
}

std::size_t number_of_hosts(const std::vector<Measured>& all) {
  std::set<std::string> hosts;
  for (const auto& measured : all) hosts.insert(measured.host);
  return hosts.size();
}

Slow slow_for(const std::vector<Measured>& all) {
  if (!on_cpu(all)) return {kFloorOfDevices, kNoiseOfDevices};
  if (number_of_hosts(all) > 1) return {kFloorOfHosts, kNoiseOfHosts};
  return {kFloorOfOneHost, kNoiseOfOneHost};
}

Expectations communication_expectations(const nlohmann::json& expected, Culprits& culprits) {
  auto known = kCollectives;
  known.push_back("pair");
  return expectations_in(expected, "communication", "at_least_gb", known, culprits);
}

Phrase name_of_group(const std::string& group) {
  if (group == "world") return {group, "全部进程"};
  if (group == "replicate") return {group, "各副本之间"};
  return group == "shard" ? Phrase{group, "各分片之间"} : Phrase(group);
}

Phrase pair_of(const Phrase& one, const Phrase& other) {
  return {one.en + " - " + other.en, one.zh + " - " + other.zh};
}

}  // namespace sealift::verify
