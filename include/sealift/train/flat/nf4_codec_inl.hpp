// SPDX-License-Identifier: Apache-2.0
// The bodies of nf4_codec.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/nf4_codec.hpp>

namespace sealift::train {

SEALIFT_BODY at::Tensor Nf4Codec::store(const FlatLayout& layout, const ReadRange& read,
                                        const at::TensorOptions& options, Groups& groups, const std::string& unit) {
  at::NoGradGuard no_grad;
  layout_ = layout;
  code_ = torch::tensor(at::ArrayRef<float>(nf4::kCode)).to(options.device());
  map_ = nf4::dynamic_map().to(options.device());
  const auto n = layout.shard_numel, rank = groups.shard.rank();
  auto message = torch::zeros({message_bytes(n)}, options.dtype(at::kByte));
  const auto scales = torch::zeros({n / kBlock}, options.dtype(at::kFloat));
  for (std::size_t i = 0; i < layout.placements.size(); ++i) {
    const auto part = layout.fragment(i, rank);
    for (std::int64_t done = 0; done < part.numel; done += nf4::kPiece) {
      const auto piece = torch::empty({std::min(nf4::kPiece, part.numel - done)}, options);
      read(i, part.in_parameter + done, piece);
      const auto at = part.in_shard + done;
      nf4::quantize(piece, message.narrow(0, at / 2, (piece.numel() + 1) / 2),
                    scales.narrow(0, at / kBlock, nf4::blocks_of(piece.numel())));
    }
  }
  auto all = scales;
  if (layout.shards > 1) {
    all = torch::empty({layout.shards * scales.numel()}, scales.options());
    groups.shard.all_gather(all, scales, unit).wait();
  }
  all = values_on_host(all);
  statistics_ = statistics(all).to(options.device());
  if (groups.world.size() > 1) groups.world.broadcast(statistics_, unit).wait();
  message.narrow(0, n / 2, n / kBlock).copy_(quantize_scales(all.narrow(0, rank * (n / kBlock), n / kBlock), rank));
  return message;
}

SEALIFT_BODY void Nf4Codec::decode(at::Tensor whole, const at::Tensor& messages, std::int64_t ranks) const {
  at::NoGradGuard no_grad;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto bytes = messages.numel() / ranks;
    const auto message = messages.narrow(0, rank * bytes, bytes);
    for (std::size_t i = 0; i < layout_.placements.size(); ++i) {
      const auto part = layout_.fragment(i, rank);
      if (part.numel == 0) continue;
      const auto out = whole.narrow(0, rank * layout_.shard_numel + part.in_shard, part.numel);
      const auto encoded = encoded_part(message, i, part);
      if (!decode_nf4(encoded, out)) nf4::dequantize(encoded.codes, scales_of(message, i, part), out, code_);
    }
  }
}

SEALIFT_BODY EncodedNf4 Nf4Codec::encoded_part(const at::Tensor& message, std::size_t index,
                                               const Fragment& part) const {
  const auto groups = nf4::groups_of(nf4::blocks_of(layout_.placements[index].numel));
  return {
      .codes = message.narrow(0, part.in_shard / 2, (part.numel + 1) / 2),
      .scale_codes = message.narrow(0, layout_.shard_numel / 2 + part.in_shard / kBlock, nf4::blocks_of(part.numel)),
      .code = code_,
      .map = map_,
      .statistics = statistics_.narrow(0, first_statistic(index), 1 + groups),
      .first_block = part.in_parameter / kBlock};
}

SEALIFT_BODY std::int64_t Nf4Codec::first_statistic(std::size_t index) const {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < index; ++i) first += statistics_bytes(layout_.placements[i].numel) / 4;
  return first;
}

SEALIFT_BODY at::Tensor Nf4Codec::statistics(const at::Tensor& all) const {
  std::vector<at::Tensor> result;
  for (const auto& place : layout_.placements) {
    const auto scales = all.narrow(0, place.offset / kBlock, nf4::blocks_of(place.numel));
    const auto mean = scales.numel() == 0 ? torch::zeros({}) : nf4::mean_by_one_thread(scales);
    const auto centered = (scales - mean).abs();
    const auto groups = nf4::groups_of(scales.numel());
    const auto padded =
        at::constant_pad_nd(centered, {0, groups * nf4::kGroup - scales.numel()}).view({groups, nf4::kGroup});
    result.push_back(mean.view({1}));
    result.push_back(groups == 0 ? torch::zeros({0}) : padded.amax({1}));
  }
  return at::cat(result);
}

SEALIFT_BODY at::Tensor Nf4Codec::quantize_scales(const at::Tensor& own, std::int64_t rank) const {
  auto result = torch::zeros({own.numel()}, at::kByte);
  const auto statistics = values_on_host(statistics_);
  for (std::size_t i = 0; i < layout_.placements.size(); ++i) {
    const auto part = layout_.fragment(i, rank);
    const auto* known = statistics.const_data_ptr<float>() + first_statistic(i);
    const auto first = part.in_shard / kBlock, before = part.in_parameter / kBlock;
    const auto centered = own.narrow(0, first, nf4::blocks_of(part.numel)) - known[0];
    const auto* values = centered.const_data_ptr<float>();
    auto* to = result.mutable_data_ptr<std::uint8_t>() + first;
    for (std::int64_t block = 0; block < centered.numel(); ++block) {
      to[block] = nf4::quantize_scale(values[block], known[1 + (before + block) / nf4::kGroup]);
    }
  }
  return result;
}

SEALIFT_BODY at::Tensor Nf4Codec::scales_of(const at::Tensor& message, std::size_t index, const Fragment& part) const {
  const auto blocks = nf4::blocks_of(part.numel), first = part.in_parameter / kBlock, group = first / nf4::kGroup;
  const auto known = first_statistic(index);
  const auto most = statistics_.narrow(0, known + 1 + group, nf4::groups_of(first % nf4::kGroup + blocks));
  const auto codes = message.narrow(0, layout_.shard_numel / 2 + part.in_shard / kBlock, blocks);
  auto scales = map_.index_select(0, codes.to(at::kInt));
  scales.mul_(most.repeat_interleave(nf4::kGroup).narrow(0, first % nf4::kGroup, blocks));
  return scales.add_(statistics_[known]);
}

}  // namespace sealift::train
