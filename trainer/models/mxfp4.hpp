// SPDX-License-Identifier: Apache-2.0
// Experts that files hold in MXFP4 (gpt-oss), read as numbers: 4 bits each, and a power of 2 for 32 of them.
// Between the files and stored_experts.hpp when a model is loaded. Saved models hold the numbers.
// The numbers are those of transformers' dequantization; each of them is exact in bfloat16.
#pragma once

#include "trainer/models/decoder_config.hpp"

#include <sealift/train.hpp>

#include <filesystem>
#include <set>

namespace sealift::trainer {

/// blocks [rows, groups, 16] and scales [rows, groups], both uint8 -> fp32 [32 * groups, rows]
at::Tensor decode_mxfp4(const at::Tensor& blocks, const at::Tensor& scales);

/// A source of parameters in front of one of files in which `NAME_blocks` and `NAME_scales` stand for some of them.
class Mxfp4Source final : public train::Source {
 public:
  /// `files` outlives this. Of `folder` only the headers are read, and only where the config says MXFP4.
  Mxfp4Source(train::Source& files, const std::filesystem::path& folder, const DecoderConfig& config);

  void check(const std::vector<train::WantedTensor>& wanted) override;
  bool has(const std::string& name) const override;
  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override;

 private:
  /// Numbers of one expert, one after another; the last one is kept, since reads come a piece at a time.
  const at::Tensor& expert_of(const std::string& name, at::IntArrayRef sizes, std::int64_t expert);

  train::Source& files_;
  std::set<std::string> packed_;
  std::pair<std::string, std::int64_t> kept_{"", -1};
  at::Tensor kept_numbers_;
};

}  // namespace sealift::trainer
