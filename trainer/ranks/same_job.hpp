// SPDX-License-Identifier: Apache-2.0
// Whether all ranks were given the same job: each host may have its own settings, environment and copies of files.
// Once, when ranks have met and opened their data, before anything is computed.
// The core compares models and the order of collectives; a learning rate or other data show in no collective, and ranks
// that differ in them train replicas that part, or plan epochs of other examples, without an error.
#pragma once

#include "trainer/settings/settings.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

namespace sealift::trainer {

/// The settings of `table` as text by name, without the ones in `of_the_host`.
template <class Options>
Texts settings_of_job(Options options, const std::vector<SettingOf<Options>>& table,
                      const std::set<std::string>& of_the_host) {
  Texts texts;
  for (const auto& setting : table) {
    if (!of_the_host.contains(setting.name)) texts[setting.name] = text_of(setting.of(options));
  }
  return texts;
}

/// Throws on all ranks unless `mine` is rank 0's, naming a rank and what it has otherwise. Collective.
inline void require_same_job(train::Collectives& world, const Texts& mine) {
  const auto own = nlohmann::json::to_cbor(nlohmann::json(mine));  // texts need not be UTF-8
  const auto size = torch::tensor({static_cast<std::int64_t>(own.size())}, torch::kInt64);
  world.broadcast(size, "size of the job").wait();
  const auto bytes = torch::zeros({size.item<std::int64_t>()}, torch::kByte);
  if (world.rank() == 0) std::memcpy(bytes.mutable_data_ptr(), own.data(), own.size());
  world.broadcast(bytes, "job").wait();
  const auto* first = bytes.const_data_ptr<std::uint8_t>();
  train::detail::all_or_none(world, "comparing jobs", [&]() -> std::string {
    const auto theirs = nlohmann::json::from_cbor(first, first + bytes.numel()).get<Texts>();
    const auto value_in = [](const Texts& texts, const std::string& name) {
      const auto found = texts.find(name);
      return found == texts.end() ? std::string("no setting") : "'" + found->second + "'";
    };
    auto all = theirs;  // of both, since programs may differ too
    all.insert(mine.begin(), mine.end());
    std::string differences;
    for (const auto& [name, value] : all) {
      const auto here = value_in(mine, name), there = value_in(theirs, name);
      if (here != there)
        differences += (differences.empty() ? "" : ", ") + name + " is " + here + ", on rank 0 " + there;
    }
    TORCH_CHECK(differences.empty(), "rank ", world.rank(), " has another job than rank 0: ", differences,
                "; start all ranks with the same settings, environment and data");
    return "";
  });
}

}  // namespace sealift::trainer
