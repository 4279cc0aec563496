// SPDX-License-Identifier: Apache-2.0
// Parameters that Hugging Face's files hold as several tensors: the experts of a block, one parameter in memory, are
// stored one by one. Between `parallelize` and the files when a model is loaded, and in an export when it is saved.
// A parameter's elements are those of its pieces one after another, so that a range of it is ranges of them.
#pragma once

#include "trainer/models/decoder_config.hpp"

#include <sealift/train/checkpoint/export.hpp>

namespace sealift::trainer {

/// The stored tensors of parameter `name` of shape `sizes`, in its elements' order: of `….mlp.experts.gate_up_proj`
/// [experts, 2 * n, width] these are `….mlp.experts.0.gate_proj.weight`, `….0.up_proj.weight`, `….1.gate_proj.weight`
/// …, of Mixtral's `….block_sparse_moe.experts.gate_up_proj` `….0.w1.weight`, `….0.w3.weight` …; of any other itself.
inline std::vector<train::NamedShape> stored_tensors(const std::string& name, at::IntArrayRef sizes) {
  const bool is_gate_up = name.ends_with(".experts.gate_up_proj"), is_down = name.ends_with(".experts.down_proj");
  if (!is_gate_up && !is_down) return {{name, sizes.vec()}};

  TORCH_CHECK(sizes.size() == 3 && (is_down || sizes[1] % 2 == 0), "parameter '", name, "' has shape ", sizes,
              "; expected [experts, rows, columns], of gate_up_proj an even number of rows");
  using Names = std::vector<std::string>;
  const bool is_mixtral = name.find(".block_sparse_moe.") != std::string::npos;
  const auto down = is_mixtral ? Names{"w2"} : Names{"down_proj"};
  const auto gate_up = is_mixtral ? Names{"w1", "w3"} : Names{"gate_proj", "up_proj"};
  const auto rows = is_down ? sizes[1] : sizes[1] / 2;
  const auto experts = name.substr(0, name.rfind('.') + 1);
  std::vector<train::NamedShape> stored;
  for (std::int64_t expert = 0; expert < sizes[0]; ++expert) {
    for (const auto& matrix : is_down ? down : gate_up) {
      stored.push_back({experts + std::to_string(expert) + "." + matrix + ".weight", {rows, sizes[2]}});
    }
  }
  return stored;
}

/// The rule for a model of `config`: experts by columns are stored as they are in memory.
inline train::FileTensors file_tensors_of(const DecoderConfig& config) {
  if (!config.experts || !config.experts->by_columns) return stored_tensors;
  return [](const std::string& name, at::IntArrayRef sizes) {
    return std::vector<train::NamedShape>{{name, sizes.vec()}};
  };
}

/// A source of parameters in front of one of the tensors that they are stored as.
class FileTensorsSource final : public train::Source {
 public:
  /// `files` outlives this.
  explicit FileTensorsSource(train::Source& files, train::FileTensors file_tensors = stored_tensors)
      : files_(files), file_tensors_(std::move(file_tensors)) {}

  void check(const std::vector<train::WantedTensor>& wanted) override {
    std::vector<train::WantedTensor> all;
    for (const auto& tensor : wanted) {
      const auto stored = file_tensors_(tensor.name, tensor.sizes);
      first_of_[tensor.name] = stored.front().name;
      for (const auto& [name, sizes] : stored) {
        auto each = tensor;
        each.name = name;
        each.sizes = sizes;
        all.push_back(std::move(each));
      }
    }
    files_.check(all);
  }

  bool has(const std::string& name) const override {
    const auto known = first_of_.find(name);
    return files_.has(known == first_of_.end() ? name : known->second);
  }

  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override {
    const auto end = begin + out.numel();
    std::int64_t first = 0;  // of the stored tensor, in the parameter
    for (const auto& stored : file_tensors_(name, sizes)) {
      const auto numel = c10::multiply_integers(stored.sizes);
      const auto from = std::max(begin, first), to = std::min(end, first + numel);
      if (from < to) files_.read(stored.name, stored.sizes, from - first, out.narrow(0, from - begin, to - from));
      first += numel;
    }
    TORCH_CHECK(end <= first, "elements up to ", end, " of '", name, "' were asked for; it has ", first);
  }

 private:
  train::Source& files_;
  train::FileTensors file_tensors_;
  std::map<std::string, std::string> first_of_;  ///< a checked parameter's first stored tensor
};

}  // namespace sealift::trainer
