// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/tape.hpp"

#include <utility>

namespace sealift::trainer::plan {

Tape::Id Tape::make(std::int64_t bytes, Part part) {
  meter_->add(part, bytes);
  written_ += bytes;
  tensors_.push_back({.bytes = bytes, .part = part});
  return tensors_.size() - 1;
}

void Tape::drop(Id id) {
  auto& tensor = tensors_[id];
  if (--tensor.holders == 0) meter_->remove(tensor.part, tensor.bytes);
}

void Tape::save(Id id) {
  if (records) ++tensors_[id].holders;
}

void Tape::give(Id id, std::int64_t bytes, std::int64_t scratch) {
  auto& tensor = tensors_[id];
  meter_->touch(Part::Activations, bytes * (tensor.lent ? 2 : 1) + scratch);
  written_ += bytes;
  if (tensor.gradient >= 0 && !tensor.lent) return;  // added in place
  meter_->add(Part::Activations, bytes);
  tensor.gradient = bytes;
  tensor.lent = false;
}

void Tape::free_gradient(Id id) {
  auto& tensor = tensors_[id];
  const auto bytes = std::exchange(tensor.gradient, -1);
  if (bytes > 0 && !tensor.lent) meter_->remove(Part::Activations, bytes);
  tensor.lent = false;
}

void Tape::lend(Id id) {
  tensors_[id].gradient = 0;
  tensors_[id].lent = true;
}

void Tape::pass(Id sum, Id first, Id second) {
  tensors_[first].gradient = std::exchange(tensors_[sum].gradient, -1);
  tensors_[first].lent = std::exchange(tensors_[sum].lent, false);
  lend(second);
}

void Tape::backward(std::size_t down_to) {
  while (nodes_.size() > down_to) {
    const auto run = std::move(nodes_.back());
    nodes_.pop_back();
    run();
  }
}

}  // namespace sealift::trainer::plan
