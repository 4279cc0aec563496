// SPDX-License-Identifier: Apache-2.0
// The bodies of collectives.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/collectives.hpp>

#include <numeric>

namespace sealift::train {

SEALIFT_BODY void Ticket::wait() {
  if (const auto in_flight = std::exchange(in_flight_, nullptr)) in_flight->wait();
}

SEALIFT_BODY Ticket Collectives::all_gather(at::Tensor full, at::Tensor shard, const std::string& unit,
                                            std::uint64_t detail) {
  if (size() == 1) return {};
  check_parts(full, shard);
  auto flight = begin("all_gather", full, unit, detail);
  count(channel_->traffic->all_gather, nbytes(full) * (size() - 1) / size());
  if (full.numel() == 0) return {};
  if (channel_->takes(full)) {
    auto whole = as_bytes(full), own = as_bytes(shard);
    flight->issue_on_device([&](c10d::Backend& engine) { return engine._allgather_base(whole, own); });
    return Ticket(std::move(flight));
  }
  full = full.flatten();
  const auto mine = part(full, rank());
  if (mine.data_ptr() != shard.data_ptr()) mine.copy_(shard.flatten());
  flight->exchange([&](auto) { return mine; }, [&](auto peer) { return part(full, peer); });
  return Ticket(std::move(flight));
}

SEALIFT_BODY Ticket Collectives::reduce_scatter(at::Tensor shard, at::Tensor full, const std::string& unit,
                                                std::uint64_t detail) {
  if (size() == 1) return {};
  check_parts(full, shard);
  auto flight = begin("reduce_scatter", full, unit, detail);
  count(channel_->traffic->reduce_scatter, nbytes(full) * (size() - 1) / size());
  if (full.numel() == 0) return {};
  if (channel_->takes(full)) {
    flight->issue_on_device([&](c10d::Backend& engine) { return engine._reduce_scatter_base(shard, full); });
    return Ticket(std::move(flight));
  }
  full = full.flatten();
  auto theirs = buffer(*flight, shard);
  flight->exchange([&](auto peer) { return part(full, peer); }, [&](auto peer) { return row(theirs, peer); });
  flight->finish = [sum = shard.flatten(), own = part(full, rank()), theirs, rank = rank()] {
    detail::add_in_rank_order(sum, own, theirs, rank);
  };
  return Ticket(std::move(flight));
}

SEALIFT_BODY Ticket Collectives::all_reduce(at::Tensor tensor, const std::string& unit, std::uint64_t detail) {
  if (size() == 1) return {};
  auto flight = begin("all_reduce", tensor, unit, detail);
  const bool few = tensor.is_cpu() && nbytes(tensor) <= kFewBytes;
  count(channel_->traffic->all_reduce,
        few ? nbytes(tensor) * (size() - 1) : 2 * nbytes(tensor) * (size() - 1) / size());
  if (tensor.numel() == 0) return {};
  std::vector<at::Tensor> tensors{tensor};
  if (channel_->takes(tensor)) {
    flight->issue_on_device([&](c10d::Backend& engine) { return engine.allreduce(tensors); });
    return Ticket(std::move(flight));
  }
  if (!few) {
    flight->issue_whole([&](c10d::Backend& gloo) { return gloo.allreduce(tensors); });
    return Ticket(std::move(flight));
  }
  // Gloo reads `own` until every peer has it, so the sum goes into `tensor` only then.
  auto flat = tensor.flatten();
  auto theirs = buffer(*flight, flat);
  flight->exchange([&](auto) { return flat; }, [&](auto peer) { return row(theirs, peer); });
  flight->finish = [flat, theirs, rank = rank()] { detail::add_in_rank_order(flat, flat, theirs, rank); };
  return Ticket(std::move(flight));
}

SEALIFT_BODY Ticket Collectives::broadcast(at::Tensor tensor, const std::string& unit, std::uint64_t detail) {
  if (size() == 1) return {};
  auto flight = begin("broadcast", tensor, unit, detail);
  count(channel_->traffic->broadcast, nbytes(tensor) * (size() - 1) / size());
  if (tensor.numel() == 0) return {};
  std::vector<at::Tensor> tensors{as_bytes(tensor)};
  if (channel_->takes(tensor)) {
    flight->issue_on_device([&](c10d::Backend& engine) { return engine.broadcast(tensors); });
  } else {
    flight->issue_whole([&](c10d::Backend& gloo) { return gloo.broadcast(tensors); });
  }
  return Ticket(std::move(flight));
}

SEALIFT_BODY Ticket Collectives::all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t> out_rows,
                                            std::vector<std::int64_t> in_rows, const std::string& unit,
                                            std::uint64_t detail) {
  check_rows("out", out, out_rows);
  check_rows("in", in, in_rows);
  TORCH_CHECK(out.sizes().slice(1) == in.sizes().slice(1) && out.scalar_type() == in.scalar_type(), "out has rows of ",
              out.scalar_type(), " ", out.sizes().slice(1), ", in of ", in.scalar_type(), " ", in.sizes().slice(1),
              "; rows must be of one kind");
  at::NoGradGuard no_grad;
  if (size() == 1) {
    out.copy_(in);
    return {};
  }
  const auto row = c10::multiply_integers(in.sizes().slice(1));
  auto flight = begin("all_to_all", in, unit, detail, row);  // ranks agree on a row, not on how many there are
  TORCH_CHECK(out.is_contiguous(), "all_to_all into a tensor of strides ", out.strides(), "; pass a contiguous one");
  const auto own = static_cast<std::size_t>(rank());
  const auto own_bytes = in_rows[own] * row * static_cast<std::int64_t>(in.element_size());
  count(channel_->traffic->all_to_all, nbytes(in) - own_bytes);
  if (channel_->takes(in)) {
    flight->issue_on_device([&](c10d::Backend& engine) { return engine.alltoall_base(out, in, out_rows, in_rows); });
    return Ticket(std::move(flight));
  }
  const auto part_of = [](const at::Tensor& all, const std::vector<std::int64_t>& rows) {
    return [parts = all.split_with_sizes(rows)](std::int64_t peer) { return parts[static_cast<std::size_t>(peer)]; };
  };
  const auto mine = part_of(in, in_rows), theirs = part_of(out, out_rows);
  theirs(rank()).copy_(mine(rank()));
  flight->exchange(mine, theirs);
  return Ticket(std::move(flight));
}

SEALIFT_BODY void Collectives::barrier() {
  if (size() == 1) return;
  const auto token = at::zeros({size()}, at::kByte);
  auto flight = begin("barrier", token, {}, 0);
  flight->exchange([&](auto) { return part(token, rank()); }, [&](auto peer) { return part(token, peer); });
  flight->wait();
}

SEALIFT_BODY void Collectives::count(Traffic& traffic, std::int64_t bytes) {
  traffic.calls += 1;
  traffic.bytes += bytes;
}

SEALIFT_BODY at::Tensor Collectives::part(const at::Tensor& full, std::int64_t peer) const {
  const auto n = full.numel() / size();
  return full.narrow(0, peer * n, n);
}

SEALIFT_BODY void Collectives::check_parts(const at::Tensor& full, const at::Tensor& shard) const {
  TORCH_CHECK(full.numel() == size() * shard.numel() && full.scalar_type() == shard.scalar_type(), "full has ",
              full.numel(), " ", full.scalar_type(), ", shard ", shard.numel(), " ", shard.scalar_type(),
              ", in a group of ", size(), " ranks; full must hold one shard of the same dtype per rank");
  TORCH_CHECK(full.is_contiguous() && shard.is_contiguous(),
              "full and shard must be contiguous; pass flat buffers, or contiguous() copies");
}

SEALIFT_BODY void Collectives::check_rows(const char* name, const at::Tensor& tensor,
                                          const std::vector<std::int64_t>& rows) const {
  const auto sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const bool negative = std::any_of(rows.begin(), rows.end(), [](std::int64_t n) { return n < 0; });
  TORCH_CHECK(
      tensor.dim() > 0 && static_cast<std::int64_t>(rows.size()) == size() && !negative && sum == tensor.size(0), name,
      " has shape ", tensor.sizes(), " for rows ", rows, " of ", size(),
      " ranks; expected one number for each rank, their sum the tensor's first size");
}

SEALIFT_BODY at::Tensor Collectives::buffer(detail::InFlight& flight, const at::Tensor& like) {
  const auto rows = flight.channel->size() - 1;
  const auto bytes = rows * nbytes(like);
  flight.buffer = flight.channel->take_buffer(bytes);
  return flight.buffer.narrow(0, 0, bytes).view(like.scalar_type()).view({rows, like.numel()});
}

SEALIFT_BODY Collectives::Flight Collectives::begin(const char* op, const at::Tensor& tensor, const std::string& unit,
                                                    std::uint64_t detail) {
  return begin(op, tensor, unit, detail, tensor.numel());
}

SEALIFT_BODY Collectives::Flight Collectives::begin(const char* op, const at::Tensor& tensor, const std::string& unit,
                                                    std::uint64_t detail, std::int64_t numel) {
  TORCH_CHECK(tensor.is_contiguous(), op, " of a tensor of shape ", tensor.sizes(), " and strides ", tensor.strides(),
              "; pass a contiguous one");
  TORCH_CHECK(tensor.is_cpu() || channel_->takes(tensor), op, " of a tensor on ", tensor.device(),
              " in a group that was made for ", channel_->device, "; set World::device before make_groups");
  auto flight = std::make_shared<detail::InFlight>();
  flight->channel = channel_;
  flight->label = {op, unit, detail, numel, tensor.scalar_type()};
  const auto hash = flight->label.hash();
  const auto transition = (channel_->previous ^ (hash >> 1)) * 0x100000001b3 ^ hash;
  const bool known = channel_->agreed.contains(transition);
  if (channel_->order_check == OrderCheck::Always || (channel_->order_check == OrderCheck::NewOnly && !known)) {
    detail::compare_labels(channel_, flight->label);
    ++channel_->order_checks;
    channel_->agreed.insert(transition);
  }
  channel_->previous = hash;
  flight->group = channel_->group;
  flight->number = channel_->watch->issued().issue(channel_->group, flight->label);
  flight->tag = channel_->tag(hash, flight->number);
  return flight;
}

}  // namespace sealift::train
