// SPDX-License-Identifier: Apache-2.0
// The first draft, and the places of ranks as they become known.
// See start_of_run.hpp.
// A rank's place is a key in the store: nobody waits for it, so that one that is missing holds nobody up.
#include "verify/verbs/start_of_run.hpp"

#include "verify/conduct/conduct.hpp"
#include "verify/conduct/identity.hpp"
#include "verify/conduct/utc_now.hpp"

#include <torch/torch.h>

#include <algorithm>

namespace sealift::verify {
namespace {

std::string key_of_place(std::int64_t rank) {
  return "sealift_verify/place/" + std::to_string(rank);
}

void add_rank(std::vector<Node>& nodes, std::int64_t rank, const std::string& host, const std::string& device) {
  auto node = std::find_if(nodes.begin(), nodes.end(), [&](const Node& other) { return other.host == host; });
  if (node == nodes.end()) node = nodes.insert(nodes.end(), Node{.host = host, .ranks = {}, .devices = {}});
  node->ranks.push_back(rank);
  node->devices.push_back(device);
}

}  // namespace

Draft first_draft(const Site& site, std::int64_t ranks, const std::vector<CheckKind>& kinds) {
  Draft draft{.verdict = {.site = site.expected.value("name", site.hostname),
                          .level = site.level,
                          .started = utc_now(),
                          .program = std::string("LibTorch ") + TORCH_VERSION,
                          .bundle = bundle_of(site.prefix)},
              .left = checks_left(kinds, 0, site),
              .since = utc_now()};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    add_rank(draft.verdict.nodes, site.rank + rank, site.host, site.device);
  }
  draft.left.front().reason = {};  // ranks start, whatever --only says
  return draft;
}

void say_place(const train::World& world, const Node& mine) {
  if (world.size == 1) return;
  const nlohmann::json said{mine.host, mine.devices.at(0)};
  world.store->set(key_of_place(world.rank), said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void note_places(const train::World& world, const std::filesystem::path& folder) {
  auto draft = find_draft(folder);
  if (world.size == 1 || !draft) return;
  std::vector<Node> nodes;
  try {
    for (std::int64_t rank = 0; rank < world.size; ++rank) {
      const auto key = key_of_place(rank);
      if (!world.store->check({key})) continue;
      const auto said = nlohmann::json::parse(world.store->get_to_str(key));
      add_rank(nodes, rank, said.at(0), said.at(1));
    }
    draft->verdict.nodes = std::move(nodes);
    keep_draft(*draft, folder);
  } catch (const std::exception&) {
    // What was known before is said.
  }
}

}  // namespace sealift::verify
