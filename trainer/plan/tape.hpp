// SPDX-License-Identifier: Apache-2.0
// Memory as autograd holds it, in numbers: tensors that are made, kept for backward and freed, and the most at a time.
// Below decoder_tape, which plays a layer's operations on it, and memory, which plays the engine's gathers around them.
// The peak of a step is at no place that is known before, so the step is played rather than put into one formula.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace sealift::trainer::plan {

/// What a byte on a rank is for; the order is that of `RankMemory`.
enum class Part { Parameters, Gradients, Moments, Gathered, Activations, Logits, Buffers, Slack };
inline constexpr std::size_t kParts = 8;
using Bytes = std::array<std::int64_t, kParts>;

/// Bytes that are held now, and what they were for when they were most.
class Meter {
 public:
  void add(Part part, std::int64_t bytes) {
    now_[static_cast<std::size_t>(part)] += bytes;
    sum_ += bytes;
    if (sum_ <= most_) return;
    most_ = sum_;
    peak_ = now_;
  }
  void remove(Part part, std::int64_t bytes) { add(part, -bytes); }
  /// Bytes that come and go within one operation.
  void touch(Part part, std::int64_t bytes) {
    add(part, bytes);
    remove(part, bytes);
  }
  /// Forgets the peak so far.
  void restart() {
    most_ = sum_;
    peak_ = now_;
  }

  const Bytes& now() const { return now_; }
  const Bytes& peak() const { return peak_; }

 private:
  Bytes now_{}, peak_{};
  std::int64_t sum_ = 0, most_ = 0;
};

/// The tensors of a forward and its backward. A tensor lives while its scope or a node holds it.
class Tape {
 public:
  using Id = std::size_t;

  /// `gradient(numel)`: a parameter's gradient of so many elements is there, in the compute dtype. `product()`: that
  /// of a projection's weight is added to the engine's buffer by the product that makes it; unset: it is a tensor
  /// first.
  Tape(Meter& meter, std::function<void(std::int64_t)> gradient, std::function<void()> product = {})
      : meter_(&meter), gradient_(std::move(gradient)), product_(std::move(product)) {}

  bool records = true;  ///< false: nothing is kept for backward

  Meter& meter() { return *meter_; }
  Id make(std::int64_t bytes, Part part = Part::Activations);
  void drop(Id id);
  /// Keeps `id` until `free_saved`; nothing while not recording.
  void save(Id id);
  void free_saved(Id id) { drop(id); }
  std::int64_t bytes(Id id) const { return tensors_[id].bytes; }
  /// Bytes of all tensors and gradients that were made so far, each written once.
  std::int64_t written() const { return written_; }

  /// Adds what backward does at this place; run in reverse by `backward`.
  void node(std::function<void()> run) {
    if (records) nodes_.push_back(std::move(run));
  }
  /// A gradient of `id`, beside which `scratch` bytes are held while it is made; added to one that is there.
  void give(Id id, std::int64_t bytes, std::int64_t scratch = 0);
  bool has_gradient(Id id) const { return tensors_[id].gradient >= 0; }
  void free_gradient(Id id);
  /// `id` gets a gradient whose memory another holds: what is added to it needs memory of its own.
  void lend(Id id);
  /// The gradient of `sum` becomes that of `first`, which has none, and is lent to `second`: an addition's.
  void pass(Id sum, Id first, Id second);
  /// A parameter's gradient of `numel` elements.
  void parameter(std::int64_t numel) const { gradient_(numel); }
  /// Whether a projection's gradient is never a tensor of its own, and one such.
  bool adds_products() const { return static_cast<bool>(product_); }
  void product() const { product_(); }

  /// Runs the nodes from the last one down to `down_to`, the number of nodes to leave.
  void backward(std::size_t down_to = 0);
  std::size_t nodes() const { return nodes_.size(); }

 private:
  struct Tensor {
    std::int64_t bytes = 0;
    Part part = Part::Activations;
    std::int64_t holders = 1;
    std::int64_t gradient = -1;  ///< bytes; -1: none
    bool lent = false;           ///< another holds them
  };

  Meter* meter_;
  std::function<void(std::int64_t)> gradient_;
  std::function<void()> product_;
  std::vector<Tensor> tensors_;
  std::vector<std::function<void()>> nodes_;
  std::int64_t written_ = 0;
};

}  // namespace sealift::trainer::plan
