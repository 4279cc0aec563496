// SPDX-License-Identifier: Apache-2.0
// LoRA: a frozen model of `Projection`s, and two small factors beside each that is adapted.
// After the model is built and before parallelize(), which puts frozen and trained parameters in flats of their own.
// Names, defaults and formulas are PEFT's, so that an adapter means the same in both programs.
// Mirrored by trainer/plan/decoder_tape.cpp (adapted): change both.
#pragma once

#include "trainer/models/projection.hpp"
#include "trainer/tuning/lora_options.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer {

/// Throws unless the options can be meant.
void check(const LoraOptions& options);

/// The adapter of one projection: output + scaling * B A dropout(input), or with DoRA (arXiv:2402.09353) the rows of
/// W + scaling * B A stretched to the lengths in `lora_magnitude_vector`.
class LoraAdapter final : public Adapter {
 public:
  /// On the device of `base`'s weight, without values; fp32 where that is fp16 or bf16. `path`: of the projection in
  /// the model, which the options' patterns may name.
  LoraAdapter(const ProjectionImpl& base, const LoraOptions& options, const std::string& path = "");

  at::Tensor apply_to(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight) override;
  std::optional<LinearPart> factors() const override;

  /// Of all adapters of the model.
  const LoraOptions& options() const { return options_; }
  /// Of this one.
  double scaling() const { return scaling_; }

  /// false: the projection computes what it does without the adapter.
  void enable(bool enabled) { enabled_ = enabled; }

 private:
  at::Tensor stretched(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight,
                       const at::Tensor& change) const;

  LoraOptions options_;
  double scaling_ = 1;
  bool enabled_ = true;
  at::Tensor a_, b_, magnitude_;  ///< [rank, in], [out, rank], [out] or undefined
  at::Tensor bias_;               ///< the projection's
};

/// W + scaling * B A, or with `magnitude` its DoRA, in W's dtype: what a projection without an adapter computes alike.
/// `weight` [rows, in], `b` [rows, rank], `magnitude` [rows] or undefined: any rows of the projection's, `a` [rank,
/// in].
at::Tensor merged(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b, const at::Tensor& magnitude,
                  double scaling);

/// Freezes `model` except `modules_to_save` and adds an adapter to each projection that `options` names, under `lora`;
/// returns their paths, in the order of the model. Throws when a name matches none, with the names that there are.
/// Where the model has values, the adapters get those of `LoraSource`; where it is on the meta device, give
/// parallelize() a `LoraSource`.
std::vector<std::string> add_lora(torch::nn::Module& model, const LoraOptions& options, std::uint64_t seed = 0);

/// First values of an adapted model: adapters as the options say, from numbers that depend on `seed` and the name
/// alone, everything else from `base`, which outlives it.
class LoraSource final : public train::Source {
 public:
  LoraSource(train::Source& base, const LoraOptions& options, std::uint64_t seed);

  void check(const std::vector<train::WantedTensor>& wanted) override;
  bool has(const std::string& name) const override { return base_->has(name); }
  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override;

 private:
  train::Source* base_;
  train::InitFunction factors_;
  std::map<std::string, train::WantedTensor> weights_;  ///< of adapted projections, by the name of their magnitudes
};

/// Whether `name` is a parameter of an adapter that `add_lora` added.
bool is_adapters(const std::string& name);

/// Whether `name` is a parameter of a module that `modules_to_save` names.
bool is_saved_whole(const std::string& name, const std::vector<std::string>& modules_to_save);

/// The adapters of a model, by the path of their projection.
std::map<std::string, std::shared_ptr<LoraAdapter>> find_adapters(const torch::nn::Module& model);

/// While it lives, `model` computes what it does without its adapters, if `without`.
class WithoutAdapters {
 public:
  explicit WithoutAdapters(const torch::nn::Module& model, bool without = true)
      : adapters_(without ? find_adapters(model) : decltype(adapters_){}) {
    for (auto& [path, adapter] : adapters_) adapter->enable(false);
  }
  WithoutAdapters(const WithoutAdapters&) = delete;
  WithoutAdapters& operator=(const WithoutAdapters&) = delete;
  ~WithoutAdapters() {
    for (auto& [path, adapter] : adapters_) adapter->enable(true);
  }

 private:
  std::map<std::string, std::shared_ptr<LoraAdapter>> adapters_;
};

/// How `model`, adapted and spread as `parallel`, is written as a plain one by `train::export_safetensors`: adapters
/// merged, projections that are kept encoded read again from `stored`, which may be null when none is. Gathers the
/// adapters; collective.
train::ExportOptions merge_adapters(const torch::nn::Module& model, train::Parallel& parallel,
                                    train::Source* stored = nullptr);

}  // namespace sealift::trainer
