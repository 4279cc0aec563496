// SPDX-License-Identifier: Apache-2.0
// The bounds.
// See step_bounds.hpp.
// Counts are bounded before anything is allocated: shapes may come from files.
#include "trainer/simulate/step_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace sealift::trainer {
namespace {

[[noreturn]] void refuse(const std::string& what, double got, const std::string& expected) {
  throw std::invalid_argument("simulate: " + what + " is " + std::to_string(got) + "; expected " + expected);
}

/// The events of more unit passes than this would not fit into a machine's memory.
constexpr std::int64_t kMostUnitPasses = 4'000'000;
/// Sums of a few do not overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

void check(const UnitWork& unit, std::size_t number) {
  const auto where = " of unit " + (unit.name.empty() ? std::to_string(number) : unit.name);
  for (const auto& [name, flops] :
       {std::pair{"forward_flops", unit.forward_flops}, {"backward_flops", unit.backward_flops}}) {
    if (!(flops >= 0) || std::isinf(flops)) refuse(name + where, flops, "a finite number of operations, 0 or more");
  }
  for (const auto& [name, bytes] : {std::pair{"gather_bytes", unit.gather_bytes},
                                    {"reduce_bytes", unit.reduce_bytes},
                                    {"gather_again_bytes", unit.gather_again_bytes == -1 ? 0 : unit.gather_again_bytes},
                                    {"copies_bytes", unit.copies_bytes},
                                    {"forward_memory_bytes", unit.forward_memory_bytes},
                                    {"backward_memory_bytes", unit.backward_memory_bytes},
                                    {"bus_in_bytes", unit.bus_in_bytes},
                                    {"bus_out_bytes", unit.bus_out_bytes}}) {
    if (bytes < 0 || bytes > kMostBytes) refuse(name + where, static_cast<double>(bytes), "bytes, 0 to 2^60");
  }
}

}  // namespace

void check_step(const StepShape& shape, const Rates& rates) {
  if (shape.units.empty()) refuse("the number of units", 0, "at least the root");
  for (std::size_t i = 0; i < shape.units.size(); ++i) check(shape.units[i], i);
  const auto most = kMostUnitPasses / static_cast<std::int64_t>(shape.units.size());
  if (shape.micro_batches < 1 || shape.micro_batches > most) {
    refuse("micro_batches", static_cast<double>(shape.micro_batches), "1 to " + std::to_string(most));
  }
  for (const auto& [name, number] : {std::pair{"offload_bytes", shape.offload_bytes},
                                     {"optimizer_bytes", shape.optimizer_bytes},
                                     {"forward_prefetch", shape.forward_prefetch},
                                     {"backward_prefetch", shape.backward_prefetch},
                                     {"bucket_bytes", shape.bucket_bytes},
                                     {"first_bucket_bytes", shape.first_bucket_bytes},
                                     {"small_collectives", shape.small_collectives}}) {
    if (number < 0) refuse(name, static_cast<double>(number), "0 or more");
  }
  // A bucket is an event.
  double replicated = 0;
  for (const auto& unit : shape.units) replicated += unit.gather_bytes > 0 ? 0 : static_cast<double>(unit.reduce_bytes);
  const auto smallest = shape.bucket_bytes;
  if (smallest > 0 && replicated / static_cast<double>(smallest) * static_cast<double>(shape.micro_batches) >
                          static_cast<double>(kMostUnitPasses)) {
    refuse("bucket_bytes", static_cast<double>(smallest), "buckets large enough for the model");
  }
  if (shape.small_collectives > kMostUnitPasses) {
    refuse("small_collectives", static_cast<double>(shape.small_collectives), "at most a few");
  }
  if (rates.collectives_at_once < 1) {
    refuse("collectives_at_once", static_cast<double>(rates.collectives_at_once), "1 or more");
  }
  const auto lost = rates.computing_lost_to_transfers;
  if (!(lost >= 0 && lost <= 1)) refuse("computing_lost_to_transfers", lost, "a part, 0 to 1");
  for (const auto& [name, latency] : {std::pair{"link_latency_seconds", rates.link_latency_seconds},
                                      {"copies_latency_seconds", rates.copies_latency_seconds}}) {
    if (!(latency >= 0) || std::isinf(latency)) refuse(name, latency, "seconds, 0 or more");
  }
}

double needed(double rate, const char* name) {
  if (!(rate > 0) || std::isinf(rate)) refuse(name, rate, "a finite rate above 0, since this step needs it");
  return rate;
}

}  // namespace sealift::trainer
