// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/mxfp4.hpp"

#include "trainer/models/weight_files.hpp"

namespace sealift::trainer {
namespace {

constexpr std::int64_t kBlock = 32, kBytes = 16;
constexpr int kBias = 127;
constexpr const char *kBlocks = "_blocks", *kScales = "_scales";

struct PackedSizes {
  std::vector<std::int64_t> blocks, scales;
};

/// Of a parameter [experts, in, out], which files hold by rows of `out`.
PackedSizes packed_sizes(at::IntArrayRef sizes) {
  const auto groups = sizes[1] / kBlock;
  return {{sizes[0], sizes[2], groups, kBytes}, {sizes[0], sizes[2], groups}};
}

}  // namespace

at::Tensor decode_mxfp4(const at::Tensor& blocks, const at::Tensor& scales) {
  static const auto values = torch::tensor(
      {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F, -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F});
  const auto of = [](const at::Tensor& numbers) { return values.index_select(0, numbers.flatten().to(at::kInt)); };
  const auto both = at::stack({of(blocks.bitwise_and(15)), of(blocks.bitwise_right_shift(4))}, -1);
  const auto exponents = scales.to(at::kInt).sub(kBias).unsqueeze(-1);
  return at::ldexp(both.view({blocks.size(0), blocks.size(1), kBlock}), exponents).flatten(1).t().contiguous();
}

Mxfp4Source::Mxfp4Source(train::Source& files, const std::filesystem::path& folder, const DecoderConfig& config)
    : files_(files) {
  if (!config.mxfp4) return;
  for (const auto& [name, shape] : stored_shapes(folder)) {
    if (name.ends_with(kBlocks)) packed_.insert(name.substr(0, name.size() - std::string_view(kBlocks).size()));
  }
}

void Mxfp4Source::check(const std::vector<train::WantedTensor>& wanted) {
  std::vector<train::WantedTensor> all;
  for (const auto& tensor : wanted) {
    if (!packed_.contains(tensor.name)) {
      all.push_back(tensor);
      continue;
    }
    TORCH_CHECK(tensor.sizes.size() == 3 && tensor.sizes[1] % kBlock == 0, "parameter '", tensor.name, "' has shape ",
                tensor.sizes, " and lies in MXFP4; expected [experts, in, out], in being a multiple of ", kBlock);
    const auto sizes = packed_sizes(tensor.sizes);
    all.push_back({.name = tensor.name + kBlocks, .sizes = sizes.blocks, .dtype = at::kByte});
    all.push_back({.name = tensor.name + kScales, .sizes = sizes.scales, .dtype = at::kByte});
  }
  files_.check(all);
}

bool Mxfp4Source::has(const std::string& name) const {
  return files_.has(packed_.contains(name) ? name + kBlocks : name);
}

const at::Tensor& Mxfp4Source::expert_of(const std::string& name, at::IntArrayRef sizes, std::int64_t expert) {
  if (kept_ == std::pair(name, expert)) return kept_numbers_;
  const auto packed = packed_sizes(sizes);
  const auto part = [&](const char* end, const std::vector<std::int64_t>& whole) {
    auto bytes = torch::empty(at::IntArrayRef(whole).slice(1), at::kByte);
    files_.read(name + end, whole, expert * bytes.numel(), bytes.view({-1}));
    return bytes;
  };
  const auto blocks = part(kBlocks, packed.blocks);
  kept_numbers_ = decode_mxfp4(blocks, part(kScales, packed.scales)).view({-1});
  kept_ = {name, expert};
  return kept_numbers_;
}

void Mxfp4Source::read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) {
  if (!packed_.contains(name)) return files_.read(name, sizes, begin, std::move(out));
  const auto of_expert = sizes[1] * sizes[2], end = begin + out.numel();
  for (auto at = begin; at < end;) {
    const auto expert = at / of_expert, first = at % of_expert;
    const auto count = std::min(end - at, of_expert - first);
    out.narrow(0, at - begin, count).copy_(expert_of(name, sizes, expert).narrow(0, first, count));
    at += count;
  }
}

}  // namespace sealift::trainer
