// SPDX-License-Identifier: Apache-2.0
// Standard input: a JSON list of shapes and rates; standard output: the seconds of each, simulated.
// For measured_test.py, which fits rates to one run and holds the others to what is printed here.
// Names are those of step_time.hpp, and a missing one has its default, so that a test says only what it means.
#include "trainer/simulate/step_time.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

using namespace sealift::trainer;
using Json = nlohmann::json;

namespace {

template <class Value>
void read(const Json& json, const char* name, Value& value) {
  if (json.contains(name)) json.at(name).get_to(value);
}

UnitWork unit_of(const Json& json) {
  UnitWork unit;
  read(json, "forward_flops", unit.forward_flops);
  read(json, "backward_flops", unit.backward_flops);
  read(json, "gather_bytes", unit.gather_bytes);
  read(json, "reduce_bytes", unit.reduce_bytes);
  read(json, "copies_bytes", unit.copies_bytes);
  read(json, "forward_memory_bytes", unit.forward_memory_bytes);
  read(json, "backward_memory_bytes", unit.backward_memory_bytes);
  return unit;
}

StepShape shape_of(const Json& json) {
  StepShape shape;
  for (const auto& unit : json.at("units")) shape.units.push_back(unit_of(unit));
  read(json, "micro_batches", shape.micro_batches);
  read(json, "gather_again_in_backward", shape.gather_again_in_backward);
  read(json, "reduce_every_micro_batch", shape.reduce_every_micro_batch);
  read(json, "optimizer_bytes", shape.optimizer_bytes);
  read(json, "keep_gathered", shape.keep_gathered);
  read(json, "forward_prefetch", shape.forward_prefetch);
  read(json, "backward_prefetch", shape.backward_prefetch);
  read(json, "bucket_bytes", shape.bucket_bytes);
  read(json, "first_bucket_bytes", shape.first_bucket_bytes);
  read(json, "small_collectives", shape.small_collectives);
  return shape;
}

Rates rates_of(const Json& json) {
  Rates rates;
  read(json, "flops", rates.flops);
  read(json, "link_bytes_per_second", rates.link_bytes_per_second);
  read(json, "link_latency_seconds", rates.link_latency_seconds);
  read(json, "memory_bytes_per_second", rates.memory_bytes_per_second);
  read(json, "collectives_at_once", rates.collectives_at_once);
  read(json, "computing_lost_to_transfers", rates.computing_lost_to_transfers);
  return rates;
}

}  // namespace

int main() try {
  auto result = Json::array();
  for (const auto& each : Json::parse(std::cin)) {
    const auto time = simulate(shape_of(each.at("shape")), rates_of(each.at("rates")));
    result.push_back({{"seconds", time.seconds},
                      {"compute", time.compute},
                      {"exposed_gather", time.exposed_gather},
                      {"exposed_reduce", time.exposed_reduce},
                      {"optimizer", time.optimizer}});
  }
  std::cout << result.dump() << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << "step_time_of: " << error.what() << '\n';
  return 2;
}
