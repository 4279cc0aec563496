// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/engine_memory.hpp"

#include <algorithm>
#include <utility>

namespace sealift::trainer::plan {
namespace {

bool is_gathered(bool in_flat, const FlatShape& flat) {
  return in_flat || flat.stored() != Stored::Plain;
}

}  // namespace

std::int64_t ChannelBuffers::take(std::int64_t bytes) {
  std::sort(spare_.begin(), spare_.end());
  const auto fits = std::lower_bound(spare_.begin(), spare_.end(), bytes);
  if (fits == spare_.end()) {
    meter_->add(Part::Buffers, bytes);
    return bytes;
  }
  const auto size = *fits;
  spare_.erase(fits);
  return size;
}

void ChannelBuffers::give(std::int64_t bytes) {
  spare_.push_back(bytes);
  if (spare_.size() <= 2) return;
  const auto least = std::min_element(spare_.begin(), spare_.end());
  meter_->remove(Part::Buffers, *least);
  spare_.erase(least);
}

EngineMemory::EngineMemory(const ModelShape& shape, const Way& way, Meter& meter)
    : way_(way), meter_(&meter), pool_(meter, way.batch.kernels == Kernels::Host), channel_(meter) {
  for (const auto& unit : shape.units) add(unit);
}

void EngineMemory::add(const UnitShape& shape) {
  Unit unit{.flats = flats_of(shape, way_.shard), .is_root = units_.empty(), .shards = way_.shard};
  unit.in_flat = way_.method != Method::None && (way_.shard > 1 || way_.narrow() || way_.offload_parameters);
  for (const auto& flat : unit.flats) {
    const bool whole = !is_gathered(unit.in_flat, flat);
    std::int64_t kept = flat.kept_bytes();
    if (whole) {
      kept = 0;
      for (const auto& each : flat.parameters) kept += each.numel * each.element_bytes;
    }
    keep(Part::Parameters, kept, way_.offload_parameters);
    meter_->add(Part::Parameters, flat.statistics_bytes());
    if (!flat.trained()) continue;
    unit.trained += flat.padded;
    keep(Part::Moments, 2 * kept, way_.offload_moments || way_.offload_parameters);
    if (unit.in_flat && way_.shard == 1) pool_.take(Part::Gradients, flat.padded * kReduceBytes);
    if (!unit.in_flat && way_.ranks > 1) pool_.take(Part::Gradients, kept);
  }
  unit.has_gradient = unit.in_flat && way_.shard == 1;
  units_.push_back(std::move(unit));
}

void EngineMemory::keep(Part part, std::int64_t bytes, bool on_host) {
  if (on_host && offloads()) {
    to_host(bytes);
  } else {
    meter_->add(part, bytes);
  }
}

void EngineMemory::to_host(std::int64_t bytes) {
  most_host_ = std::max(most_host_, host_ += bytes);
}

void EngineMemory::start_gather(std::size_t number) {
  auto& unit = units_[number];
  if (unit.residence != Unit::Sharded) return;
  unit.residence = Unit::Gathering;
  for (const auto& flat : unit.flats) {
    if (!is_gathered(unit.in_flat, flat)) continue;
    pool_.take(Part::Gathered, wide(flat.padded));
    meter_->add(Part::Buffers, sent(flat));
    if (flat.stored() != Stored::Plain && flat.shards > 1) pool_.take(Part::Buffers, flat.kept_bytes() * flat.shards);
  }
}

/// What a gather holds of the shard: cast, or fetched from the host.
std::int64_t EngineMemory::sent(const FlatShape& flat) const {
  const auto fetched = way_.offload_parameters && offloads() ? flat.kept_bytes() : 0;
  const bool casts =
      flat.stored() == Stored::Plain && flat.parameters.front().element_bytes != way_.batch.compute_bytes;
  return fetched + (casts && flat.shards > 1 ? wide(flat.shard()) : 0);
}

void EngineMemory::gather(std::size_t number) {
  start_gather(number);
  auto& unit = units_[number];
  if (unit.residence != Unit::Gathering) return;
  unit.residence = Unit::Whole;
  for (const auto& flat : unit.flats) {
    if (!is_gathered(unit.in_flat, flat)) continue;
    meter_->remove(Part::Buffers, sent(flat));
    if (flat.stored() != Stored::Plain && flat.shards > 1) pool_.give(Part::Buffers, flat.kept_bytes() * flat.shards);
  }
}

void EngineMemory::reshard(std::size_t number) {
  auto& unit = units_[number];
  if (unit.residence == Unit::Gathering) gather(number);
  if (unit.residence != Unit::Whole) return;
  unit.residence = Unit::Sharded;
  for (const auto& flat : unit.flats) {
    if (is_gathered(unit.in_flat, flat)) pool_.give(Part::Gathered, wide(flat.padded));
  }
}

void EngineMemory::collect(std::size_t number, std::int64_t numel) {
  auto& unit = units_[number];
  meter_->add(Part::Gradients, wide(numel));
  if (unit.in_flat && unit.is_root && way_.narrow()) {
    unit.late += wide(numel);
    return;
  }
  if (unit.in_flat) make_room(unit);
  if (!unit.in_flat && way_.ranks == 1) {
    if (unit.has_shard_gradient) meter_->remove(Part::Gradients, wide(numel));  // added to an earlier one
    if (!unit.has_shard_gradient) unit.plain += wide(numel);
    return;
  }
  meter_->remove(Part::Gradients, wide(numel));
}

bool EngineMemory::adds_products() const {
  const bool reduces = way_.method != Method::None && (way_.ranks > 1 || units_.back().in_flat);
  return reduces && (!way_.narrow() || way_.batch.kernels == Kernels::Cuda);
}

void EngineMemory::add_product(std::size_t number) {
  if (units_[number].in_flat) make_room(units_[number]);
}

void EngineMemory::make_room(Unit& unit) {
  if (unit.has_gradient) return;
  unit.has_gradient = true;
  pool_.take(Part::Gradients, unit.trained * kReduceBytes);
}

void EngineMemory::settle(Unit& unit) {
  if (unit.late == 0) return;
  make_room(unit);
  meter_->remove(Part::Gradients, unit.late);
  unit.late = 0;
}

void EngineMemory::close(std::size_t number, bool reduces, bool last) {
  auto& unit = units_[number];
  if (!keeps() || last) reshard(number);
  settle(unit);
  if (unit.plain > 0) unit.has_shard_gradient = true;
  if (reduces && unit.shards == 1 && way_.offload_gradients && way_.ranks + unit.in_flat > 1) leave_copies(unit);
  if (!reduces || !unit.in_flat || unit.shards == 1 || !unit.has_gradient) return;
  const std::size_t in_flight = way_.copies() > 1 ? 1 : 0;
  while (running_.size() > in_flight) finish_oldest();
  if (!running_.empty()) summing(*running_.front());
  const auto shard = unit.trained / unit.shards * kReduceBytes;
  meter_->add(Part::Gradients, shard);
  if (way_.batch.kernels == Kernels::Host) unit.buffer = channel_.take(shard * (unit.shards - 1));
  running_.push_back(&unit);
}

/// What is not sharded stays in its buffer, and its mean waits on the host beside.
void EngineMemory::leave_copies(Unit& unit) {
  if (unit.copies > 0 || unit.trained == 0) return;
  unit.copies = unit.trained * kReduceBytes;
  offloads() ? to_host(unit.copies) : meter_->add(Part::Gradients, unit.copies);
}

/// The sum over the shard group is there: the whole goes.
void EngineMemory::summing(Unit& unit) {
  if (!unit.has_gradient) return;
  unit.has_gradient = false;
  pool_.give(Part::Gradients, unit.trained * kReduceBytes);
  if (unit.buffer > 0) channel_.give(std::exchange(unit.buffer, 0));
}

void EngineMemory::finish_oldest() {
  auto& unit = *running_.front();
  running_.pop_front();
  summing(unit);
  const auto shard = unit.trained / unit.shards * kReduceBytes;
  const bool leaves = (way_.offload_gradients || way_.offload_parameters) && offloads();
  if (way_.offload_gradients && !offloads()) meter_->touch(Part::Gradients, shard);  // a copy of its own
  if (leaves && !unit.has_shard_gradient) to_host(shard);
  if (leaves || unit.has_shard_gradient) meter_->remove(Part::Gradients, shard);
  unit.has_shard_gradient = true;
}

void EngineMemory::finish_reductions() {
  while (!running_.empty()) finish_oldest();
}

void EngineMemory::zero_gradients() {
  for (auto& unit : units_) {
    const auto shard = unit.trained / unit.shards * kReduceBytes;
    const bool left = (way_.offload_gradients || way_.offload_parameters) && offloads();
    if (std::exchange(unit.has_shard_gradient, false) && unit.in_flat && unit.shards > 1) {
      left ? to_host(-shard) : meter_->remove(Part::Gradients, shard);
    }
    meter_->remove(Part::Gradients, std::exchange(unit.plain, 0));
    const auto copies = std::exchange(unit.copies, 0);
    offloads() ? to_host(-copies) : meter_->remove(Part::Gradients, copies);
  }
}

}  // namespace sealift::trainer::plan
