// SPDX-License-Identifier: Apache-2.0
// The bodies of broadcast.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/broadcast.hpp>

#include <map>

namespace sealift::train {

SEALIFT_BODY void broadcast_together(Collectives& group, const std::vector<at::Tensor>& tensors,
                                     const std::string& label) {
  if (group.size() == 1) return;
  at::NoGradGuard no_grad;
  constexpr std::size_t kPiece = std::size_t{25} << 20;
  std::map<std::pair<at::ScalarType, at::DeviceType>, std::vector<at::Tensor>> by_kind;
  for (const auto& tensor : tensors) by_kind[{tensor.scalar_type(), tensor.device().type()}].push_back(tensor);
  for (const auto& [kind, members] : by_kind) {
    for (std::size_t begin = 0, end = 0; begin < members.size(); begin = end) {
      std::vector<at::Tensor> flat;
      for (std::size_t bytes = 0; end < members.size() && (flat.empty() || bytes < kPiece); ++end) {
        flat.push_back(members[end].detach().reshape({-1}));
        bytes += flat.back().nbytes();
      }
      const auto together = at::cat(flat);
      group.broadcast(together, label).wait();
      std::int64_t offset = 0;
      for (std::size_t i = begin; i < end; ++i) {
        members[i].detach().copy_(together.narrow(0, offset, members[i].numel()).view(members[i].sizes()));
        offset += members[i].numel();
      }
    }
  }
}

}  // namespace sealift::train
