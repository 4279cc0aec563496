// SPDX-License-Identifier: Apache-2.0
// The bodies of transport.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/transport.hpp>

namespace sealift::train {

SEALIFT_BODY Transfer::Transfer(Ticket first, std::function<void()> finish, Round second)
    : ticket_(std::move(first)), second_(std::move(second)), finish_(std::move(finish)) {}

SEALIFT_BODY void Transfer::advance() {
  if (!second_) return;
  ticket_.wait();
  ticket_ = std::exchange(second_, nullptr)();
}

SEALIFT_BODY void Transfer::wait() {
  advance();
  ticket_.wait();
  if (const auto finish = std::exchange(finish_, nullptr)) finish();
}

SEALIFT_BODY Transfer PlainTransport::reduce_scatter(at::Tensor shard, at::Tensor whole, Collectives group,
                                                     const std::string& label, std::uint64_t detail) {
  return Transfer(group.reduce_scatter(shard, whole, label, detail), [whole] {});  // keeps what is sent
}

SEALIFT_BODY Transfer PlainTransport::all_reduce(at::Tensor buffer, Collectives group, const std::string& label,
                                                 std::uint64_t detail) {
  return Transfer(group.all_reduce(buffer, label, detail));
}

SEALIFT_BODY Transfer HalfTransport::reduce_scatter(at::Tensor shard, at::Tensor whole, Collectives group,
                                                    const std::string& label, std::uint64_t detail) {
  if (group.size() == 1) return PlainTransport().reduce_scatter(shard, whole, group, label, detail);
  const auto sent = on_wire(whole);
  const auto received = detail::flat_buffer(shard.numel(), sent.options());
  return Transfer(group.reduce_scatter(received, sent, label, detail),
                  [shard, received, sent] { shard.copy_(received); });
}

SEALIFT_BODY Transfer HalfTransport::all_reduce(at::Tensor buffer, Collectives group, const std::string& label,
                                                std::uint64_t detail) {
  if (group.size() == 1) return {};
  const auto sent = on_wire(buffer);
  return Transfer(group.all_reduce(sent, label, detail), [buffer, sent] { buffer.copy_(sent); });
}

SEALIFT_BODY at::Tensor HalfTransport::on_wire(const at::Tensor& buffer) const {
  return detail::flat_buffer(buffer.numel(), buffer.options().dtype(dtype_)).copy_(buffer);
}

}  // namespace sealift::train
