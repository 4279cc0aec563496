// SPDX-License-Identifier: Apache-2.0
// Comparing devices of one kind.
// See judge.hpp.
// A device that differs from itself tells on itself, so it has no say in what most computed.
#include "verify/arithmetic/judge.hpp"

#include "verify/conduct/expectations.hpp"
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

Phrase first_difference(const ArithmeticJob& job, const std::vector<std::string>& mine,
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

/// What a run of so many products can see of a device that is wrong by chance, now and then.
Phrase seen_by(std::int64_t runs, std::int64_t products) {
  // A fault in one of P products is missed by N of them with a chance of (1 - 1/P)^N, which is 5 % where N = 3 P.
  const auto n = std::to_string(products), rate = std::to_string(products / 3);
  return {"in " + std::to_string(runs) + " runs each made " + n + " products with weights, so a device that is wrong " +
              "once in " + rate +
              " of them is seen with a chance of 95 %, a rarer fault less often; --minutes buys more",
          "共 " + std::to_string(runs) + " 次运行，每个设备做 " + n + " 次权重矩阵乘法：每 " + rate +
              " 次出错一次的设备有 95 % 的概率被发现，更少见的错误更难发现；可延长运行时间"};
}

/// Removes from `group` and accuses those of which a later run differs.
void accuse_unsteady(Group& group, Culprits& culprits) {
  const auto places = places_of(group.job);
  std::erase_if(group.members, [&](const Measured* member) {
    const auto& again = member->values.at("again");
    if (again.is_null()) return false;
    const auto place = text_of(places.at(again.get<std::size_t>()));
    culprits.add(name_of(*member), {"does not compute the same twice; the first difference is " + place.en,
                                    "两次计算结果不同；首个差异：" + place.zh});
    return true;
  });
}

void hold_to(const std::vector<std::string>& right, const Phrase& whose, const Group& group, Culprits& culprits) {
  for (const auto* member : group.members) {
    const auto mine = digests_of(*member);
    if (mine == right) continue;
    const auto place = first_difference(group.job, mine, right);
    culprits.add(name_of(*member), {"differs from " + whose.en + "; the first difference is " + place.en,
                                    "与" + whose.zh + "不同；首个差异：" + place.zh});
  }
}

/// No majority: nobody can say who is right.
void accuse_all(const Group& group, Culprits& culprits) {
  const auto first = digests_of(*group.members.front());
  for (const auto* member : group.members) {
    const auto mine = digests_of(*member);
    const auto other = mine == first ? digests_of(*group.members.back()) : first;
    const auto place = first_difference(group.job, mine, other);
    culprits.add(name_of(*member),
                 {"it and another device of its kind differ, and no majority says which is right; the first "
                  "difference is " +
                      place.en,
                  "与同类设备不同，且没有多数结果可判断对错；首个差异：" + place.zh});
  }
}

void compare_siblings(const Group& group, Culprits& culprits) {
  if (group.members.empty()) return;
  std::vector<std::vector<std::string>> computed;
  for (const auto* member : group.members) computed.push_back(digests_of(*member));
  if (const auto most = what_most_are(computed)) {
    hold_to(*most, {"most devices of its kind", "多数同类设备"}, group, culprits);
  } else {
    accuse_all(group, culprits);
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
  Culprits culprits;
  std::size_t devices = 0, digests = 0, held = 0, single = 0;
  std::int64_t runs = 0, products = 0;  // of the device that made fewest
  for (auto& group : groups_of(all)) {
    for (const auto* member : group.members) {
      const auto mine = member->values.at("runs").get<std::int64_t>(), made = mine * products_of(group.job);
      if (products == 0 || made < products) runs = mine, products = made;
    }
    devices += group.members.size();
    digests = std::max(digests, places_of(group.job).size());
    const auto* reference = reference_for(group, references);
    held += reference ? group.members.size() : 0;
    single += !reference && group.members.size() == 1 ? 1 : 0;
    const Phrase held_to =
        reference ? Phrase{"held to a reference", "与参考结果比较"} : Phrase{"no reference", "无参考结果"};
    check.facts.push_back(
        {group.kind,
         {count(group.members.size(), "device") + ", LibTorch " + group.torch + ", " + held_to.en,
          std::to_string(group.members.size()) + " 个设备，LibTorch " + group.torch + "，" + held_to.zh}});
    accuse_unsteady(group, culprits);
    if (reference) {
      hold_to(reference->digests, {"the reference of its kind", "同类设备的参考结果"}, group, culprits);
    } else {
      compare_siblings(group, culprits);
    }
  }
  check.figures.push_back({{"devices", "设备"}, static_cast<double>(devices), "", {}, {}, ""});
  check.figures.push_back({{"digests of each", "每个设备的摘要数"}, static_cast<double>(digests), "", {}, {}, ""});
  check.figures.push_back(
      {{"held to a reference", "与参考结果比较的设备"}, static_cast<double>(held), {"devices", "设备"}, {}, {}, ""});
  if (!culprits.empty()) return culprits.accuse(check);
  check.outcome = Outcome::Pass;
  const auto d = std::to_string(devices), n = std::to_string(digests), r = std::to_string(runs);
  const auto often = runs == 2 ? std::string("twice") : r + " times or more";
  check.reason = {count(devices, "device") + " computed " + n + " digests " + often + ", the same to the bit",
                  d + " 个设备各计算 " + r + (runs == 2 ? " 次 " : " 次或更多 ") + n + " 个摘要，逐位相同"};
  const auto seen = seen_by(runs, products);
  check.facts.push_back({{"what this can see", "能发现什么"}, seen});
  if (single == 0) return;
  const auto s = std::to_string(single);
  check.reason.en += "; " + s + " had neither a sibling nor a reference and was compared with itself only";
  check.reason.zh += "；其中 " + s + " 个既无同类设备也无参考结果，只与自身比较";
}

void judge_heat(const std::vector<Measured>& all, Check& check) {
  Culprits culprits;
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
    culprits.add(name_of(measured),
                 {"computed something else in round " + round + " under load; the first difference is " + place.en,
                  "在满载的第 " + round + " 轮计算结果改变；首个差异：" + place.zh});
  }
  check.figures.push_back({{"rounds of the slowest device", "最慢设备的轮数"}, rounds, "", {}, {}, ""});
  check.figures.push_back({{"duration", "时长"}, seconds, "s", {}, {}, ""});
  if (!culprits.empty()) return culprits.accuse(check);
  if (rounds < 2) throw std::invalid_argument("a device has made no second round to compare");
  check.outcome = Outcome::Pass;
  const auto n = std::to_string(static_cast<std::int64_t>(rounds));
  check.reason = {count(devices, "device") + " computed the same bits in at least " + n + " rounds under load",
                  std::to_string(devices) + " 个设备在满载下至少 " + n + " 轮结果逐位相同"};
}

namespace {

/// Rates that are measured: their names in measurements and in site.toml, and what people call them.
const std::map<std::string, Phrase> kRates{{"matmul fp32", {"matmul fp32", "fp32 矩阵乘法"}},
                                           {"matmul bf16", {"matmul bf16", "bf16 矩阵乘法"}},
                                           {"memory", {"memory", "内存带宽"}},
                                           {"host to device", {"host to device", "主机到设备"}}};

/// One rate of all devices of one kind.
struct Rate {
  std::string unit;
  bool cpu = false;
  std::vector<const Measured*> who;
  std::vector<double> values;
};

/// By name and kind.
using Rates = std::map<std::pair<std::string, std::string>, Rate>;

Rates rates_of(const std::vector<Measured>& all) {
  Rates rates;
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
  return rates;
}

/// What the site expects, by name; accuses its file of rates that no device here has.
std::map<std::string, double> expected_rates(const Json& expected, const Rates& rates, Culprits& wrong_file) {
  std::vector<std::string> known;
  for (const auto& [name, called] : kRates) known.push_back(name);
  const auto at_least = expectations_in(expected, "arithmetic", "at_least", known, wrong_file);
  for (const auto& [name, value] : at_least) {
    if (std::any_of(rates.begin(), rates.end(), [&](const auto& rate) { return rate.first.first == name; })) continue;
    const auto number = number_text(value);
    wrong_file.add("site.toml", {"expects " + number + " of \"" + name + "\", and no device here has such a rate",
                                 "期望 \"" + name + "\" 至少为 " + number + "，而此处没有设备具有该速率"});
  }
  return at_least;
}

/// CPU ranks of one host take turns on its cores: shown, not compared.
bool shares_cores(const Rate& rate) {
  return rate.cpu && std::all_of(rate.who.begin(), rate.who.end(),
                                 [&](const Measured* one) { return one->host == rate.who.front()->host; });
}

void name_slow_devices(const Phrase& name, const Rate& rate, std::optional<double> wanted, Culprits& slow_devices) {
  const auto said = [&](double number) { return number_text(number) + " " + rate.unit; };
  const auto usual = said(typical_of(rate.values));
  const auto slow = shares_cores(rate) ? std::vector<std::size_t>()
                                       : slow_ones(rate.values, rate.cpu ? kFloorOfCpus : kFloorOfDevices);
  for (std::size_t i = 0; i < rate.values.size(); ++i) {
    const auto has = said(rate.values[i]);
    if (wanted && rate.values[i] < *wanted) {
      slow_devices.add(name_of(*rate.who[i]),
                       {"reaches " + has + " in " + name.en + "; the site expects " + said(*wanted),
                        name.zh + "为 " + has + "；站点期望至少 " + said(*wanted)});
    } else if (std::find(slow.begin(), slow.end(), i) != slow.end()) {
      slow_devices.add(name_of(*rate.who[i]), {"reaches " + has + " in " + name.en + ", its siblings " + usual,
                                               name.zh + "为 " + has + "，同类设备为 " + usual});
    }
  }
}

}  // namespace

void judge_rates(const std::vector<Measured>& all, const Json& expected, Check& check) {
  const auto rates = rates_of(all);
  Culprits wrong_file, slow_devices;
  const auto at_least = expected_rates(expected, rates, wrong_file);
  for (const auto& [key, rate] : rates) {
    const auto& kind = key.second;
    const auto known = kRates.find(key.first);
    const auto name = known == kRates.end() ? Phrase(key.first) : known->second;
    const auto wanted = at_least.contains(key.first) ? std::optional(at_least.at(key.first)) : std::nullopt;
    const auto figure = [&](const Phrase& which, double value) {
      check.figures.push_back({{name.en + ", " + which.en + " of " + kind, name.zh + "，" + kind + " 的" + which.zh},
                               value,
                               rate.unit,
                               wanted,
                               {},
                               wanted ? "site.toml" : ""});
    };
    figure({"typical", "典型值"}, typical_of(rate.values));
    const auto least = *std::min_element(rate.values.begin(), rate.values.end());
    if (rate.values.size() > 1) figure({"lowest", "最低值"}, least);
    name_slow_devices(name, rate, wanted, slow_devices);
  }
  if (accuse_of_rates(wrong_file, slow_devices, all, check)) return;
  check.outcome = Outcome::Pass;
  check.reason = {"no device is far below its siblings or below what the site expects",
                  "没有设备明显低于同类设备或站点期望"};
}

}  // namespace sealift::verify
