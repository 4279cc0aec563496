// SPDX-License-Identifier: Apache-2.0
// How a buffer of gradients is summed over a group: as it is, or in fp16 or bf16 on the wire.
// `flat_gradient` owns one for its buffer; below it are the collectives, above it nobody knows how bytes travel.
// A sum may need several rounds (power_sgd.hpp), so what is in flight is a `Transfer`: it begins the next round when it
// is told to, at the same places on all ranks, and not when the last one happens to be done.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/collectives.hpp>
#include <sealift/train/compression.hpp>
#include <sealift/train/flat/buffer_pool.hpp>

namespace sealift::train {

/// A sum over a group, in flight: one round of collectives or more, one after the other.
class Transfer {
 public:
  /// Runs when the round before is done: computes what to send, and begins to.
  using Round = std::function<Ticket()>;

  Transfer() = default;
  /// `finish` runs once all rounds are done.
  explicit Transfer(Ticket first, std::function<void()> finish = {}, Round second = {});

  bool has_next_round() const { return static_cast<bool>(second_); }

  /// Begins the next round, if there is one, after waiting for the one in flight. Collective if there is one.
  void advance();

  /// Returns when the sum is there; does nothing the second time.
  void wait();

 private:
  Ticket ticket_;
  Round second_;
  std::function<void()> finish_;
};

/// Sums one buffer of gradients, which are divided by the number of ranks before, so that a sum is a mean and fp16 has
/// the range for it. Labels and details as for `Collectives`; the calls are collective over the group.
class Transport {
 public:
  virtual ~Transport() = default;

  /// shard [n] = this rank's part of the sum of every rank's whole [W * n].
  virtual Transfer reduce_scatter(at::Tensor shard, at::Tensor whole, Collectives group, const std::string& label,
                                  std::uint64_t detail) = 0;

  /// buffer = the sum of every rank's buffer.
  virtual Transfer all_reduce(at::Tensor buffer, Collectives group, const std::string& label, std::uint64_t detail) = 0;
};

/// In the buffer's dtype, straight from and into it.
class PlainTransport final : public Transport {
 public:
  SEALIFT_BODY Transfer reduce_scatter(at::Tensor shard, at::Tensor whole, Collectives group, const std::string& label,
                                       std::uint64_t detail) override;
  SEALIFT_BODY Transfer all_reduce(at::Tensor buffer, Collectives group, const std::string& label,
                                   std::uint64_t detail) override;
};

/// In fp16 or bf16 on the wire, and back: half the bytes of fp32. All-reduce adds in that dtype, as PyTorch's
/// `fp16_compress_hook` and `bf16_compress_hook` do; a reduce-scatter over Gloo adds in fp32 and rounds once.
class HalfTransport final : public Transport {
 public:
  explicit HalfTransport(at::ScalarType dtype) : dtype_(dtype) {}

  SEALIFT_BODY Transfer reduce_scatter(at::Tensor shard, at::Tensor whole, Collectives group, const std::string& label,
                                       std::uint64_t detail) override;
  SEALIFT_BODY Transfer all_reduce(at::Tensor buffer, Collectives group, const std::string& label,
                                   std::uint64_t detail) override;

 private:
  at::Tensor on_wire(const at::Tensor& buffer) const;

  at::ScalarType dtype_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/transport_inl.hpp>
#endif
