// SPDX-License-Identifier: Apache-2.0
// Comparing devices of one kind.
// See judge.hpp.
// A device that differs from itself tells on itself, so it has no say in what most computed.
#include "verify/arithmetic/judge.hpp"

#include "verify/conduct/accuse.hpp"
#include "verify/conduct/processors.hpp"
#include "verify/verdict/outliers.hpp"
#include "verify/wording/numbers.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace sealift::verify {
namespace arithmetic {

using Json = nlohmann::json;

constexpr std::size_t kMostOfAReference = std::size_t{16} << 20;
constexpr double kFloorOfDevices = 0.1, kFloorOfCpus = 0.8;

std::string count(std::size_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

/// Devices that must compute the same bits.
struct Group {
  std::string kind, torch;
  ArithmeticJob job;
  std::vector<const Measured*> members;
};

std::vector<Group> groups_of(const std::vector<Measured>& all) {
  std::map<std::string, Group> groups;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    const auto& values = measured.values;
    auto& group = groups[values.at("kind").dump() + values.at("torch").dump() + values.at("job").dump()];
    if (group.members.empty()) {
      group = {values.at("kind"), values.at("torch"), arithmetic_job_from(values.at("job")), {}};
    }
    group.members.push_back(&measured);
  }
  std::vector<Group> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

std::vector<std::string> digests_of(const Measured& measured) {
  return measured.values.at("digests").get<std::vector<std::string>>();
}

Sentence first_difference(const ArithmeticJob& job, const std::vector<std::string>& mine,
                          const std::vector<std::string>& right) {
  const auto places = places_of(job);
  for (std::size_t i = 0; i < places.size() && i < mine.size() && i < right.size(); ++i) {
    if (mine[i] != right[i]) return text_of(places[i]);
  }
  return {"the number of digests", "摘要的个数"};
}

const ArithmeticReference* reference_for(const Group& group, const std::vector<ArithmeticReference>& references) {
  for (const auto& reference : references) {
    if (reference.kind == group.kind && reference.torch == group.torch && reference.job == group.job) return &reference;
  }
  return nullptr;
}

/// Removes from `group` and accuses those whose two runs differ.
void accuse_unsteady(Group& group, std::vector<Accusation>& accused) {
  const auto places = places_of(group.job);
  std::erase_if(group.members, [&](const Measured* member) {
    const auto& again = member->values.at("again");
    if (again.is_null()) return false;
    const auto place = text_of(places.at(again.get<std::size_t>()));
    accused.push_back({name_of(*member),
                       {"does not compute the same twice; the first difference is " + place.en,
                        "两次计算结果不同；首个差异：" + place.zh}});
    return true;
  });
}

void hold_to(const std::vector<std::string>& right, const Sentence& whose, const Group& group,
             std::vector<Accusation>& accused) {
  for (const auto* member : group.members) {
    const auto mine = digests_of(*member);
    if (mine == right) continue;
    const auto place = first_difference(group.job, mine, right);
    accused.push_back({name_of(*member),
                       {"differs from " + whose.en + "; the first difference is " + place.en,
                        "与" + whose.zh + "不同；首个差异：" + place.zh}});
  }
}

/// No majority: nobody can say who is right.
void accuse_all(const Group& group, std::vector<Accusation>& accused) {
  const auto first = digests_of(*group.members.front());
  for (const auto* member : group.members) {
    const auto mine = digests_of(*member);
    const auto other = mine == first ? digests_of(*group.members.back()) : first;
    const auto place = first_difference(group.job, mine, other);
    accused.push_back({name_of(*member),
                       {"and another device of its kind differ, and no majority says which is right; the first "
                        "difference is " +
                            place.en,
                        "与同类设备不同，且没有多数结果可判断对错；首个差异：" + place.zh}});
  }
}

void compare_siblings(const Group& group, std::vector<Accusation>& accused) {
  if (group.members.empty()) return;
  std::vector<std::vector<std::string>> computed;
  for (const auto* member : group.members) computed.push_back(digests_of(*member));
  if (const auto most = what_most_are(computed)) {
    hold_to(*most, {"most devices of its kind", "多数同类设备"}, group, accused);
  } else {
    accuse_all(group, accused);
  }
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) throw std::invalid_argument(std::string("no text \"") + key + "\"");
  return found->get<std::string>();
}

ArithmeticReference reference_in(const Json& json) {
  if (!json.is_object()) throw std::invalid_argument("not a JSON object");
  if (json.value("format", Json()) != 1) throw std::invalid_argument("\"format\" is not 1, which this program reads");
  ArithmeticReference reference{
      text_at(json, "kind"), text_at(json, "torch"), arithmetic_job_from(json.value("job", Json())), {}};
  const auto digests = json.value("digests", Json());
  if (!digests.is_array()) throw std::invalid_argument("no list \"digests\"");
  for (const auto& digest : digests) {
    if (!digest.is_string()) throw std::invalid_argument("a digest is not a text");
    reference.digests.push_back(digest.get<std::string>());
  }
  const auto expected = places_of(reference.job).size();
  if (reference.digests.size() != expected) {
    throw std::invalid_argument(std::to_string(reference.digests.size()) + " digests; the job has " +
                                std::to_string(expected));
  }
  return reference;
}

}  // namespace arithmetic

using namespace arithmetic;

std::vector<ArithmeticReference> read_arithmetic_references(const std::filesystem::path& folder) {
  std::vector<ArithmeticReference> references;
  std::error_code none;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") files.insert(entry.path());
  }
  for (const auto& file : files) {
    try {
      if (std::filesystem::file_size(file) > kMostOfAReference) throw std::invalid_argument("larger than 16 MiB");
      std::ifstream in(file);
      const auto json = Json::parse(in, nullptr, false);
      if (json.is_discarded()) throw std::invalid_argument("not JSON");
      references.push_back(reference_in(json));
    } catch (const std::exception& error) {
      throw std::invalid_argument("the reference " + file.string() + " cannot be used: " + error.what() +
                                  "; take the file from the bundle again, or remove it");
    }
  }
  return references;
}

std::string write_arithmetic_reference(const Json& values) {
  const nlohmann::ordered_json json{{"format", 1},
                                    {"kind", values.at("kind")},
                                    {"torch", values.at("torch")},
                                    {"job", values.at("job")},
                                    {"digests", values.at("digests")}};
  return json.dump(1) + '\n';
}

void judge_same_bits(const std::vector<Measured>& all, const std::vector<ArithmeticReference>& references,
                     Check& check) {
  std::vector<Accusation> accused;
  std::size_t devices = 0, digests = 0, held = 0, single = 0;
  for (auto& group : groups_of(all)) {
    devices += group.members.size();
    digests = std::max(digests, places_of(group.job).size());
    const auto* reference = reference_for(group, references);
    held += reference ? group.members.size() : 0;
    single += !reference && group.members.size() == 1 ? 1 : 0;
    check.facts.emplace_back(group.kind, count(group.members.size(), "device") + ", LibTorch " + group.torch +
                                             (reference ? ", held to a reference" : ", no reference"));
    accuse_unsteady(group, accused);
    if (reference) {
      hold_to(reference->digests, {"the reference of its kind", "同类设备的参考结果"}, group, accused);
    } else {
      compare_siblings(group, accused);
    }
  }
  check.figures.push_back({"devices", static_cast<double>(devices), "", {}, {}, ""});
  check.figures.push_back({"digests of each", static_cast<double>(digests), "", {}, {}, ""});
  check.figures.push_back({"held to a reference", static_cast<double>(held), "devices", {}, {}, ""});
  if (!accused.empty()) return accuse(accused, check);
  check.outcome = Outcome::Pass;
  const auto d = std::to_string(devices), n = std::to_string(digests);
  check.reason = {count(devices, "device") + " computed " + n + " digests twice, the same to the bit",
                  d + " 个设备各计算两次 " + n + " 个摘要，逐位相同"};
  if (single == 0) return;
  const auto s = std::to_string(single);
  check.reason.en += "; " + s + " had neither a sibling nor a reference and was compared with itself only";
  check.reason.zh += "；其中 " + s + " 个既无同类设备也无参考结果，只与自身比较";
}

void judge_heat(const std::vector<Measured>& all, Check& check) {
  std::vector<Accusation> accused;
  double rounds = 0, seconds = 0;
  std::size_t devices = 0;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    const auto mine = measured.values.at("rounds").get<double>();
    rounds = devices++ ? std::min(rounds, mine) : mine;
    seconds = std::max(seconds, measured.values.at("seconds").get<double>());
    const auto& fault = measured.values.at("fault");
    if (fault.is_null()) continue;
    const auto places = places_of(arithmetic_job_from(measured.values.at("job")));
    const auto place = text_of(places.at(fault.at("place").get<std::size_t>()));
    const auto round = std::to_string(fault.at("round").get<std::int64_t>());
    accused.push_back(
        {name_of(measured),
         {"computed something else in round " + round + " under load; the first difference is " + place.en,
          "在满载的第 " + round + " 轮计算结果改变；首个差异：" + place.zh}});
  }
  check.figures.push_back({"rounds of the slowest device", rounds, "", {}, {}, ""});
  check.figures.push_back({"duration", seconds, "s", {}, {}, ""});
  if (!accused.empty()) return accuse(accused, check);
  if (rounds < 2) throw std::invalid_argument("a device has made no second round to compare");
  check.outcome = Outcome::Pass;
  const auto n = std::to_string(static_cast<std::int64_t>(rounds));
  check.reason = {count(devices, "device") + " computed the same bits in at least " + n + " rounds under load",
                  std::to_string(devices) + " 个设备在满载下至少 " + n + " 轮结果逐位相同"};
}

void judge_rates(const std::vector<Measured>& all, const Json& expected, Check& check) {
  struct Rate {
    std::string unit;
    bool cpu = false;
    std::vector<const Measured*> who;
    std::vector<double> values;
  };
  std::map<std::pair<std::string, std::string>, Rate> rates;  // by name and kind
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& rate : measured.values.at("rates")) {
      auto& of_kind = rates[{rate.at("name"), measured.values.at("kind")}];
      of_kind.unit = rate.at("unit");
      of_kind.cpu = measured.values.at("cpu");
      of_kind.who.push_back(&measured);
      of_kind.values.push_back(rate.at("value"));
    }
  }
  std::vector<Accusation> wrong_file, slow_devices;
  const auto at_least = expectations_in(expected, "arithmetic", "at_least",
                                        {"matmul fp32", "matmul bf16", "memory", "host to device"}, wrong_file);
  for (const auto& [name, value] : at_least) {
    if (std::any_of(rates.begin(), rates.end(), [&](const auto& rate) { return rate.first.first == name; })) continue;
    wrong_file.push_back({"site.toml",
                          {"expects " + number_text(value) + " of \"" + name + "\", and no device here has such a rate",
                           "期望 \"" + name + "\" 至少为 " + number_text(value) + "，而此处没有设备具有该速率"}});
  }
  for (const auto& [key, rate] : rates) {
    const auto& [name, kind] = key;
    const auto wanted = at_least.contains(name) ? std::optional(at_least.at(name)) : std::nullopt;
    const auto least = *std::min_element(rate.values.begin(), rate.values.end());
    const auto figure = [&](const std::string& which, double value) {
      check.figures.push_back(
          {name + ", " + which + " of " + kind, value, rate.unit, wanted, {}, wanted ? "site.toml" : ""});
    };
    figure("typical", typical_of(rate.values));
    if (rate.values.size() > 1) figure("lowest", least);
    // CPU ranks of one host take turns on its cores: shown, not compared.
    const bool shares_cores = rate.cpu && std::all_of(rate.who.begin(), rate.who.end(), [&](const Measured* one) {
                                return one->host == rate.who.front()->host;
                              });
    const auto slow =
        shares_cores ? std::vector<std::size_t>() : slow_ones(rate.values, rate.cpu ? kFloorOfCpus : kFloorOfDevices);
    for (std::size_t i = 0; i < rate.values.size(); ++i) {
      const auto said = [&](double number) { return number_text(number) + " " + rate.unit; };
      if (wanted && rate.values[i] < *wanted) {
        slow_devices.push_back(
            {name_of(*rate.who[i]),
             {"reaches " + said(rate.values[i]) + " in " + name + "; the site expects " + said(*wanted),
              name + " 为 " + said(rate.values[i]) + "；站点期望至少 " + said(*wanted)}});
      } else if (std::find(slow.begin(), slow.end(), i) != slow.end()) {
        slow_devices.push_back(
            {name_of(*rate.who[i]),
             {"reaches " + said(rate.values[i]) + " in " + name + ", its siblings " + said(typical_of(rate.values)),
              name + " 为 " + said(rate.values[i]) + "，同类设备为 " + said(typical_of(rate.values))}});
      }
    }
  }
  if (accuse_of_rates(wrong_file, slow_devices, all, check)) return;
  check.outcome = Outcome::Pass;
  check.reason = {"no device is far below its siblings or below what the site expects",
                  "没有设备明显低于同类设备或站点期望"};
}

}  // namespace sealift::verify
