// SPDX-License-Identifier: Apache-2.0
// Over which groups collectives are checked, and what the engine chose for them.
// See measure.hpp.
// The groups are the mesh's own, so that what training will use is what is checked.
#include "verify/communication/measure.hpp"
#include "verify/communication/nccl_log.hpp"
#include "verify/communication/plan.hpp"
#include "verify/conduct/check_kind.hpp"
#include "verify/verdict/json.hpp"

#include <cstdlib>

namespace sealift::verify {

Lines make_lines(const train::Groups& world, std::int64_t local) {
  if (!world.connections) {
    throw NotRun({"one rank has nobody to talk to", "只有一个进程，没有通信对象"});
  }
  const auto [outer, inner] = mesh_of(world.world.size(), local);
  Lines lines{.groups = train::make_groups(world.connections->world, train::Mesh(outer, inner)), .all = {}};
  lines.all.push_back({"world", lines.groups.world});
  if (outer > 1 && inner > 1) {
    lines.all.push_back({"replicate", lines.groups.replicate});
    lines.all.push_back({"shard", lines.groups.shard});
  }
  return lines;
}

nlohmann::json facts_of_lines(const Lines& lines) {
  auto facts = nlohmann::json::array();
  const auto add = [&](const Phrase& name, const Phrase& value) {
    facts.push_back(nlohmann::json::array({to_json(name), to_json(value)}));
  };
  const auto on_gpus = lines.groups.device.is_cuda();
  add({"engine", "通信库"},
      on_gpus ? Phrase{"NCCL, and Gloo for what is on the host", "NCCL；主机上的数据用 Gloo"} : "Gloo");
  const auto& mesh = lines.groups.mesh;
  add({"mesh", "进程网格"},
      {mesh.text(), "副本 " + std::to_string(mesh.replicate) + " × 分片 " + std::to_string(mesh.shard)});
  for (const auto* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_NET",
                           "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_ALGO", "NCCL_PROTO"}) {
    if (const char* value = std::getenv(name)) add(name, value);
  }
  if (!on_gpus) return facts;
  for (const auto& [name, value] : facts_of_own_nccl_log()) add(name, value);
  return facts;
}

}  // namespace sealift::verify
