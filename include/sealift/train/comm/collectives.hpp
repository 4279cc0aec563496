// SPDX-License-Identifier: Apache-2.0
// The door to c10d: collectives over flat buffers, counted and watched, each returning a ticket to wait on.
// Knows tensors and groups, not parameters; the rooms above decide what is sent and when.
// The engines are c10d's own, Gloo for CPU tensors and what `engines` has for a device's: no transport is written in
// this project.
//
// On Gloo, gather and reduce-scatter are made of c10d's point-to-point calls: every rank sends each peer its part
// straight from and into the flats, and sums what it receives. Gloo's own gather copies everything twice more, and its
// reduce-scatter is an all-reduce. Measured on 2 cores over loopback, fp32, torch 2.11, Gloo's time : ours:
//   whole      64 KiB   1 MiB   4 MiB   16 MiB   64 MiB
//   gather     1.9      2.2     1.3     1.0      3.1     2 ranks
//              4.9      4.8     1.4     1.2      2.4     4 ranks
//   reduce-    3.7      2.6     5.0     2.6      3.4     2 ranks
//   scatter    1.8      2.6     4.2     3.5      3.0     4 ranks
// Also tried, and between the two: gather by W broadcasts, reduce-scatter by all-to-all (0.7 of ours) or by W reduces
// (0.3 to 0.7 of ours). Gloo's all-reduce is as fast as any composition, so it is used, except for a few numbers.
// Mirrored by trainer/plan/step_shape.cpp (what is counted as sent): change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/label_check.hpp>
#include <sealift/train/comm/rank_order_sum.hpp>

namespace sealift::train {

/// An all-reduce of at most this size sends everything to everyone: one round instead of Gloo's 2 (W - 1).
inline constexpr std::int64_t kFewBytes = 512;

/// A collective in flight; its buffers belong to it until `wait` returns. On CUDA they may be freed then on the stream
/// that is current, which must be the one they were allocated on.
class Ticket {
 public:
  Ticket() = default;
  explicit Ticket(std::shared_ptr<detail::InFlight> in_flight) : in_flight_(std::move(in_flight)) {}

  /// Blocks until the collective is done (on CUDA: until the current stream will wait for it) and throws its error;
  /// does nothing the second time.
  void wait();

 private:
  std::shared_ptr<detail::InFlight> in_flight_;
};

/// One group of ranks; a group of one does nothing and counts nothing. `unit` and `detail` go into messages. They, and
/// the order of calls, must be the same on all ranks of the group. Calls come from one thread at a time.
class Collectives {
 public:
  explicit Collectives(std::shared_ptr<detail::Channel> channel) : channel_(std::move(channel)) {}

  /// A group of one rank.
  Collectives() = default;

  std::int64_t rank() const { return channel_ ? channel_->rank() : 0; }
  std::int64_t size() const { return channel_ ? channel_->size() : 1; }

  /// The ranks of the group in the world, in the order of their numbers in the group; empty in a group of one.
  std::vector<std::int64_t> members() const { return channel_ ? channel_->members : std::vector<std::int64_t>(); }

  /// How often ranks have compared labels before a collective.
  std::int64_t order_checks() const { return channel_ ? channel_->order_checks : 0; }

  /// full [W * n] = every rank's shard [n], in rank order; `shard` may be this rank's part of `full`.
  Ticket all_gather(at::Tensor full, at::Tensor shard, const std::string& unit = {}, std::uint64_t detail = 0);

  /// shard [n] = this rank's part of the sum of every rank's full [W * n]; `shard` may be this rank's part of `full`.
  /// On the CPU added in rank order, fp16 and bf16 in fp32 and rounded once. Who wants a mean divides before.
  Ticket reduce_scatter(at::Tensor shard, at::Tensor full, const std::string& unit = {}, std::uint64_t detail = 0);

  /// tensor = the sum of every rank's tensor.
  Ticket all_reduce(at::Tensor tensor, const std::string& unit = {}, std::uint64_t detail = 0);

  /// tensor = rank 0's tensor.
  Ticket broadcast(at::Tensor tensor, const std::string& unit = {}, std::uint64_t detail = 0);

  /// out = the rows that the ranks of the group have for this one, in rank order. `in` [rows, ...] holds this rank's,
  /// `in_rows[r]` of them for rank r; `out_rows[r]` come from rank r, which both know. A row has one shape and dtype on
  /// all ranks; parts may be empty. In a group of one a copy.
  Ticket all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t> out_rows,
                    std::vector<std::int64_t> in_rows, const std::string& unit = {}, std::uint64_t detail = 0);

  /// Returns when every rank of the group has called it.
  void barrier();

 private:
  using Flight = std::shared_ptr<detail::InFlight>;

  static std::int64_t nbytes(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }
  /// For what only moves: no engine knows every dtype.
  static at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.flatten().view(at::kByte); }

  static void count(Traffic& traffic, std::int64_t bytes);

  /// Rank `peer`'s part of a flat buffer.
  at::Tensor part(const at::Tensor& full, std::int64_t peer) const;

  void check_parts(const at::Tensor& full, const at::Tensor& shard) const;

  void check_rows(const char* name, const at::Tensor& tensor, const std::vector<std::int64_t>& rows) const;

  /// A row for the data of each other rank, in a buffer that the channel keeps.
  static at::Tensor buffer(detail::InFlight& flight, const at::Tensor& like);
  at::Tensor row(const at::Tensor& theirs, std::int64_t peer) const { return theirs[peer < rank() ? peer : peer - 1]; }

  Flight begin(const char* op, const at::Tensor& tensor, const std::string& unit, std::uint64_t detail);

  /// Makes and issues the label of a collective, after comparing it with the other ranks' if that is due. `numel`: the
  /// elements on which ranks must agree.
  Flight begin(const char* op, const at::Tensor& tensor, const std::string& unit, std::uint64_t detail,
               std::int64_t numel);

  std::shared_ptr<detail::Channel> channel_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/collectives_inl.hpp>
#endif
