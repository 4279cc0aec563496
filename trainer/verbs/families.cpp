// SPDX-License-Identifier: Apache-2.0
// `sealift-train families`: which models are read, and what can be done with each.
// See models/families.hpp, whose rows these are; docs/models.md has the same table.
#include "trainer/models/families.hpp"

#include "trainer/failure.hpp"
#include "trainer/verbs/verbs.hpp"

#include <nlohmann/json.hpp>

#include <iomanip>

namespace sealift::trainer {
namespace {

struct Able {
  const char* what;
  bool (*is)(const Family& family);
};

/// Adapters sit on the projections of attention and dense MLPs, of which each family has some.
constexpr Able kAble[] = {
    {"LoRA", [](const Family&) { return true; }},
    {"QLoRA", [](const Family&) { return true; }},
    {"packing", [](const Family&) { return true; }},
    {"reward", [](const Family& family) { return family.reward; }},
    {"ep", [](const Family& family) { return family.experts != Family::NoExperts; }},
};

nlohmann::ordered_json json_of(const Family& family) {
  nlohmann::ordered_json json{{"model_type", family.name}, {"adds", family.adds}};
  for (const auto& able : kAble) json[able.what] = able.is(family);
  return json;
}

void print(const std::vector<Family>& all) {
  std::cout << std::left << std::setw(13) << "model_type";
  for (const auto& able : kAble) std::cout << std::setw(9) << able.what;
  std::cout << "what it adds to the common decoder\n";
  for (const auto& family : all) {
    std::cout << std::setw(13) << family.name;
    for (const auto& able : kAble) std::cout << std::setw(9) << (able.is(family) ? "yes" : "-");
    std::cout << family.adds << '\n';
  }
}

/// Those asked for; throws where one is not there.
std::vector<Family> chosen(const std::string& name) {
  if (name.empty()) return families();
  if (const auto* family = find_family(name)) return {*family};
  throw std::invalid_argument("model_type " + name + " is not read; " + nearest_family(name) +
                              "; `sealift-train families` lists all");
}

}  // namespace

void add_families(bundle::Program& program) {
  struct FamiliesArguments {
    std::string name;
    bool json = false;
  };
  const auto arguments = std::make_shared<FamiliesArguments>();
  const auto verb = program.verb("families", "list the models that can be read, and what can be done with each");
  verb.option("MODEL_TYPE", arguments->name, "of a config.json: only this one, or what is nearest to it");
  verb.flag("--json", arguments->json, "print as JSON");
  verb.action([arguments] {
    const auto all = chosen(arguments->name);
    if (!arguments->json) {
      print(all);
      return 0;
    }
    nlohmann::ordered_json json{{"families", nlohmann::ordered_json::array()}};
    for (const auto& family : all) json["families"].push_back(json_of(family));
    std::cout << json.dump(1) << '\n';
    return 0;
  });
}

}  // namespace sealift::trainer
