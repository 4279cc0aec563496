// SPDX-License-Identifier: Apache-2.0
// What the verbs that train share: their flags, and the ranks that run them.
// A verb gives its table and its story; this process becomes one rank of it, or starts the ranks of its host.
// A rank that fails tells the others while it is still connected, so that any one of their logs says whose fault it
// was.
#pragma once

#include "bundle/host/command_line.hpp"
#include "trainer/ranks/local_ranks.hpp"
#include "trainer/settings/settings.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

namespace sealift::trainer {

/// A flag for each setting of `table`, whose text goes into `flags`.
template <class Options>
void add_settings(const bundle::Verb& verb, const std::vector<SettingOf<Options>>& table, Texts& flags) {
  for (const auto& setting : table) {
    verb.setting(
        setting.flag(), [&flags, name = setting.name](const std::string& text) { flags[name] = text; },
        setting.help + " [" + setting.variable() + "]");
  }
}

/// The flag `--ranks`.
void add_ranks(const bundle::Verb& verb, std::int64_t& ranks);

/// What a rank does; it fills `world` with its connections.
using RankStory =
    std::function<nlohmann::ordered_json(const train::Launch& launch, std::optional<train::Groups>& world)>;

/// The result, which rank 0 has; of the other ranks, and of a host that started ranks, nothing but the exit code.
struct RanksEnd {
  int code = 0;
  std::optional<nlohmann::ordered_json> result = {};
  std::optional<FailedRank> failed = {};  ///< of a host that started ranks
  bool started_ranks = false;
};

/// Runs `story` as the rank that this process is, or starts `argv` once for each of `ranks` (0: as the launcher's
/// variables say) on this host. A rank that fails ends its process.
RanksEnd on_ranks(const RankStory& story, std::int64_t ranks, char** argv);

}  // namespace sealift::trainer
