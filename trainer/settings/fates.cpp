// SPDX-License-Identifier: Apache-2.0
// See fates.hpp.
#include "trainer/settings/fates.hpp"

#include "sealift/nearest.hpp"
#include "trainer/settings/fine_tune_options.hpp"
#include "trainer/settings/options.hpp"
#include "trainer/settings/refuse.hpp"

namespace sealift::trainer {
namespace {

Fate fate_of(Project project, const std::string& key, const std::string& value, Task task) {
  static const std::set<std::string> known = [] {
    std::set<std::string> names = {"quant_bits"};
    for (const auto& setting : fine_tune_settings()) names.insert(setting.name);
    return names;
  }();
  Fate fate{Fate::Kind::Taken, key, value, ""};
  Texts ours;
  const auto reason = take_over_key(project, key, value, "the job", task, ours);
  const auto taken = take_over(ours, "the job");
  if (!taken.problems.empty()) refuse(taken.problems.front());
  for (const auto& [name, text] : taken.texts) {
    if (!known.contains(name))
      refuse("nobody knows this key" + meant_by(name, known) + "; correct it, or leave it out");
    fate.words += (fate.words.empty() ? "" : ", ") + name + " = " + text;
  }
  if (taken.texts.empty()) {
    fate.kind = Fate::Kind::Ignored;
    fate.words = reason ? *reason : reason_of(key);
  }
  return fate;
}

}  // namespace

std::vector<Fate> fates_of(const Texts& texts, Task task) {
  std::vector<Fate> fates;
  for (const auto& [key, value] : texts) {
    try {
      fates.push_back(fate_of(project_of(texts), key, value, task));
    } catch (const std::invalid_argument& error) {
      fates.push_back({Fate::Kind::Refused, key, value, error.what()});
    }
  }
  return fates;
}

std::vector<Fate> fates_of_run(const Texts& texts) {
  std::set<std::string> known;
  for (const auto& setting : settings()) known.insert(setting.name);
  std::vector<Fate> fates;
  for (const auto& [key, value] : texts) {
    if (known.contains(key)) {
      fates.push_back({Fate::Kind::Taken, key, value, key + " = " + value});
      continue;
    }
    const auto near = nearest(key, known);
    fates.push_back({Fate::Kind::Refused, key, value,
                     "nobody knows this key" + (near.empty() ? "" : ", did you mean " + near) + "; correct it"});
  }
  return fates;
}

}  // namespace sealift::trainer
