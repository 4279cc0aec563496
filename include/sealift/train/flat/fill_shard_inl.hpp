// SPDX-License-Identifier: Apache-2.0
// The bodies of fill_shard.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/device.hpp>
#include <sealift/train/flat/fill_shard.hpp>

namespace sealift::train {

SEALIFT_BODY at::Device device_for(const at::Tensor& tensor, const Groups& groups) {
  return tensor.is_meta() || !groups.device.is_cpu() ? groups.device : tensor.device();
}

namespace detail {

SEALIFT_BODY void fill_shard(const at::Tensor& shard, const std::vector<NamedTensor>& parameters,
                             const FlatLayout& layout, std::int64_t rank, Source* source) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor] = parameters[i];
    const auto part = layout.fragment(i, rank);
    if (part.numel == 0) continue;
    const auto out = shard.narrow(0, part.in_shard, part.numel);
    if (source) {
      source->read(name, tensor.sizes(), part.in_parameter, out);
    } else {
      out.copy_(tensor.reshape({-1}).narrow(0, part.in_parameter, part.numel));
    }
  }
}

SEALIFT_BODY void receive_shard(const at::Tensor& shard, const std::vector<NamedTensor>& parameters,
                                const FlatLayout& layout, Groups& groups, const at::TensorOptions& options,
                                const std::string& unit) {
  const auto all = layout.padded_numel();
  const auto most = kPieceBytes / static_cast<std::int64_t>(options.dtype().itemsize());
  const auto buffer = torch::empty({std::min(most, all)}, options);
  const auto mine = groups.shard.rank() * layout.shard_numel;
  for (std::int64_t begin = 0; begin < all; begin += most) {
    const auto end = std::min(begin + most, all);
    const auto piece = buffer.narrow(0, 0, end - begin);
    if (groups.world.rank() == 0) {
      piece.zero_();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto& place = layout.placements[i];
        const auto from = std::max(begin, place.offset), to = std::min(end, place.offset + place.numel);
        if (from >= to) continue;
        piece.narrow(0, from - begin, to - from)
            .copy_(parameters[i].tensor.reshape({-1}).narrow(0, from - place.offset, to - from));
      }
    }
    groups.world.broadcast(piece, unit).wait();
    const auto from = std::max(begin, mine), to = std::min(end, mine + layout.shard_numel);
    if (from < to) shard.narrow(0, from - mine, to - from).copy_(piece.narrow(0, from - begin, to - from));
  }
}

}  // namespace detail

}  // namespace sealift::train
