// SPDX-License-Identifier: Apache-2.0
// The seam for a model's first values: `parallelize` asks a source for the elements that this rank holds, and no
// others. Here are the interface and the source that computes values; files are in checkpoint/safetensors_source.hpp.
// Without a source, values are those in rank 0's memory. A source is asked for ranges, not for tensors, so that no rank
// ever holds the whole of a large model.
#pragma once

#include <torch/torch.h>

#include <ATen/CPUGeneratorImpl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sealift::train {

/// What is copied at a time where values are not read straight into place, in bytes.
inline constexpr std::int64_t kPieceBytes = std::int64_t{16} << 20;

/// A tensor of the model that a source is asked for.
struct WantedTensor {
  std::string name;                       ///< its first path in the model; the one that `read` is called with
  std::vector<std::string> aliases = {};  ///< the other paths of a tied parameter
  std::vector<std::int64_t> sizes = {};
  at::ScalarType dtype = at::kFloat;
  bool required = true;  ///< false for a buffer that has a value, as a computed table, which it keeps unless `has`
};

/// A tensor's name and shape in a file.
struct NamedShape {
  std::string name;
  std::vector<std::int64_t> sizes;
};

/// What a parameter, by its name and shape, is stored as: tensors whose elements, one after another, are the
/// parameter's.
using FileTensors = std::function<std::vector<NamedShape>(const std::string& name, at::IntArrayRef sizes)>;

/// Where first values come from. Each rank has one of its own and calls it from one thread.
class Source {
 public:
  virtual ~Source() = default;

  /// Called once before the first `read` and before the model is changed; throws naming each tensor that it cannot
  /// give.
  virtual void check(const std::vector<WantedTensor>& /*wanted*/) {}

  /// Whether it has a value for a tensor that is not required.
  virtual bool has(const std::string& /*name*/) const { return false; }

  /// Writes elements [begin, begin + out.numel()) of the flattened tensor `name`, whose shape is `sizes`, into `out`
  /// [n], which is contiguous, of the tensor's dtype, and on whatever device it will live on.
  virtual void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) = 0;
};

/// Values from a function, the same on any mesh and device. The function fills one whole tensor on the CPU at a time,
/// and takes random numbers from `random` alone: a generator of this tensor's own, seeded with `seed` and a hash of the
/// tensor's name (FNV-1a, then splitmix64), which depends on nothing else.
class InitFunction final : public Source {
 public:
  using Function = std::function<void(const std::string& name, at::Tensor tensor, at::Generator random)>;

  InitFunction(Function function, std::uint64_t seed) : function_(std::move(function)), seed_(seed) {}

  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override {
    at::NoGradGuard no_grad;
    const auto numel = c10::multiply_integers(sizes);
    const bool in_place = out.is_cpu() && out.numel() == numel;
    const auto whole = in_place ? out.view(sizes) : torch::empty(sizes, out.options().device(at::kCPU));
    function_(name, whole, at::detail::createCPUGenerator(seed_of(name)));
    if (!in_place) out.copy_(whole.view({-1}).narrow(0, begin, out.numel()));
  }

 private:
  std::uint64_t seed_of(const std::string& name) const {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned char byte : name) hash = (hash ^ byte) * 0x100000001b3u;
    hash += seed_ * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
  }

  Function function_;
  std::uint64_t seed_;
};

}  // namespace sealift::train
