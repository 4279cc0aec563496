// SPDX-License-Identifier: Apache-2.0
// One step of a way to train, unit by unit, and the rates of its rings.
// See step_shape.hpp.
// What a step does more than once (gathers again, micro-batches) is the simulator's, which plays the engine's order.
#include "trainer/plan/step_shape.hpp"

#include "trainer/plan/decoder_tape.hpp"

#include <algorithm>

namespace sealift::trainer::plan {
namespace {

constexpr std::int64_t kReducedBytes = 4;
constexpr std::int64_t kBucket = std::int64_t{25} << 20, kFirstBucket = std::int64_t{1} << 20;  // Policy's own
/// Of memory for an element that is decoded: what kernels of ATen read and write, one after another. A host's by
/// QLoRA's steps beside LoRA's; a GPU's is assumed.
constexpr std::int64_t kDecodeBytesOfHost = 24, kDecodeBytesOfCuda = 10;
/// AdamW reads value, gradient and moments and writes three of them; the norm reads the gradient.
constexpr std::int64_t kOptimizerBytes = 32;
/// A host's matrix product copies a weight into the order that its kernel wants: read, written, read. A GPU reads
/// weights while it computes.
constexpr std::int64_t kPassesOfHost = 3;
/// For each byte of an activation that a host writes, about two are read. A GPU's rate of computing has them in it.
constexpr std::int64_t kActivationPassesOfHost = 3;

/// A product with a side of a few columns, as an adapter's, reaches a quarter of the rate of a host's core. Measured
/// with rank 8 and 128 to 512 tokens, one core of an AMD EPYC of family 26, MKL: 17 to 36 GFLOP/s beside 103.
constexpr double kThinProductsOfHost = 4;
/// A number of dropout is drawn by one core in 4 ns there, in which it multiplies so often.
constexpr double kDropoutFlopsOfHost = 400;

/// What a rank sends for a unit each time: gathered once, reduced over its shards, and over copies.
Volume once(const UnitShape& unit, const Way& way) {
  Volume volume;
  const auto others = way.shard - 1;
  for (const auto& flat : flats_of(unit, way.shard)) {
    const auto own = flat.stored() == Stored::Plain ? flat.shard() * way.batch.compute_bytes : flat.kept_bytes();
    volume.gather += own * others;
    if (!flat.trained()) continue;
    const auto shard = flat.shard() * kReducedBytes;
    volume.reduce += shard * others;
    volume.copies += 2 * shard * (way.copies() - 1) / way.copies();
  }
  return volume;
}

bool keeps(const Way& way) {
  return way.keep_gathered && way.micro_batches > 1;
}

bool is_adapter(const ParameterShape& parameter) {
  return parameter.name.find("lora_") != std::string::npos;
}

/// Multiplications that one token costs a parameter matrix, without adapters; embedding rows are only copied.
double matrix_elements(const ModelShape& shape, const UnitShape& unit, bool root) {
  const auto& d = shape.decoder;
  if (root) return static_cast<double>(d.vocabulary * d.width);
  double sum = 0;
  for (const auto& each : unit.parameters) {
    if (each.row == 1 || each.row == each.numel || is_adapter(each)) continue;  // norms, biases
    const bool is_expert = each.name.find("experts.") != std::string::npos;
    sum += static_cast<double>(each.numel) *
           (is_expert ? static_cast<double>(d.per_token) / static_cast<double>(d.experts) : 1);
  }
  return sum;
}

/// What adapters add in forward and backward. Each has its own input's dropout, and its factors' gradients.
void add_adapters(UnitWork& work, const ModelShape& shape, const UnitShape& unit, const Way& way) {
  const bool host = way.batch.kernels == Kernels::Host;
  const auto tokens = static_cast<double>(way.batch.tokens());
  double elements = 0, dropped = 0;
  for (const auto& each : unit.parameters) {
    if (!is_adapter(each)) continue;
    elements += static_cast<double>(each.numel);
    if (shape.lora_dropout > 0 && each.name.find("lora_A") != std::string::npos)
      dropped += static_cast<double>(each.numel / shape.lora_rank);
  }
  const auto forward =
      2 * elements * tokens * (host ? kThinProductsOfHost : 1) + (host ? kDropoutFlopsOfHost * dropped * tokens : 0);
  work.forward_flops += forward;
  work.backward_flops += 4 * elements * tokens * (host ? kThinProductsOfHost : 1) + (way.recompute ? forward : 0);
}

/// Scores and mixing of causal attention: half of the square.
double attention_flops(const DecoderShape& d, const Batch& batch) {
  return 2.0 * static_cast<double>(batch.tokens()) * static_cast<double>(batch.length) *
         static_cast<double>(d.heads * d.head_dim);
}

/// Bytes that the passes over `unit` move whatever the tokens: weights, and gradients made and added to their flat. Of
/// the root's only the head multiplies.
void add_memory(UnitWork& work, const ModelShape& shape, const UnitShape& unit, bool root, const Way& way) {
  const auto compute = way.batch.compute_bytes;
  std::int64_t all = 0, trained = 0;
  for (const auto& each : unit.parameters) {
    all += each.numel;
    trained += each.trained ? each.numel : 0;
  }
  if (root) all = shape.decoder.vocabulary * shape.decoder.width;
  const auto weights = way.batch.kernels == Kernels::Host ? kPassesOfHost * compute * all : 0;
  work.forward_memory_bytes = weights;
  work.backward_memory_bytes = weights * (way.recompute ? 2 : 1) + trained * (2 * compute + 2 * kReducedBytes);
}

/// Bytes of memory that activations and their gradients take, written and read, for the layer `number` on a host.
void add_activations(UnitWork& work, const ModelShape& shape, std::int64_t number, const Way& way) {
  if (way.batch.kernels != Kernels::Host) return;
  Meter meter;
  Tape tape(meter, [](std::int64_t) {});
  DecoderTape decoder(tape, shape, way.batch);
  const auto bytes = way.batch.tokens() * shape.decoder.width * way.batch.compute_bytes;
  const auto x = tape.make(bytes);
  const auto before = tape.written();
  const auto y = decoder.layer(x, number, true);
  const auto forward = kActivationPassesOfHost * (tape.written() - before);
  tape.give(y, bytes);
  const auto between = tape.written();
  tape.backward();
  work.forward_memory_bytes += forward;
  work.backward_memory_bytes += kActivationPassesOfHost * (tape.written() - between) + (way.recompute ? forward : 0);
}

UnitWork work_of(const ModelShape& shape, std::size_t number, const Way& way) {
  const auto& unit = shape.units[number];
  const bool root = number == 0;
  const auto tokens = static_cast<double>(root ? way.batch.counted() : way.batch.tokens());
  const auto forward =
      2 * matrix_elements(shape, unit, root) * tokens + (root ? 0 : attention_flops(shape.decoder, way.batch));
  // Frozen matrices need only the gradient of their input.
  const auto backward = (shape.lora_rank > 0 ? 1 : 2) * forward + (way.recompute && !root ? forward : 0);
  UnitWork work{.forward_flops = forward, .backward_flops = backward};
  add_memory(work, shape, unit, root, way);
  if (!root) add_adapters(work, shape, unit, way);
  if (!root) add_activations(work, shape, static_cast<std::int64_t>(number) - 1, way);
  return work;
}

/// Elements of `unit` that this rank steps, and bytes that it keeps of it.
std::pair<std::int64_t, std::int64_t> kept_of(const UnitShape& unit, const Way& way) {
  std::int64_t trained = 0, bytes = 0;
  for (const auto& flat : flats_of(unit, way.shard)) {
    trained += flat.trained() ? flat.shard() : 0;
    bytes += flat.kept_bytes();
  }
  return {trained, bytes};
}

/// What the unit sends and moves over the bus. ddp has no shards: its one sum is over copies.
void add_traffic(UnitWork& work, const UnitShape& unit, const Way& way) {
  const auto volume = once(unit, way);
  work.gather_bytes = volume.gather;
  work.reduce_bytes = way.shard == 1 ? volume.copies : volume.reduce;
  work.copies_bytes = way.shard == 1 ? 0 : volume.copies;
  const auto [trained, bytes] = kept_of(unit, way);
  if (way.offload_parameters) work.bus_in_bytes = bytes;
  if (way.offload_parameters || way.offload_gradients) work.bus_out_bytes = trained * kReducedBytes;
}

/// Of memory, for a unit's reduction over shards on a host: a core reads every rank's part of the shard and writes the
/// sum (comm/collectives.hpp). A GPU's engine adds while it receives.
std::int64_t sum_bytes(const UnitShape& unit, const Way& way) {
  if (way.shard == 1 || way.batch.kernels != Kernels::Host) return 0;
  std::int64_t bytes = 0;
  for (const auto& flat : flats_of(unit, way.shard)) bytes += flat.trained() ? flat.shard() * kReducedBytes : 0;
  return bytes * (way.shard + 1);
}

/// A card's rate in a ring of `ranks` ranks that lie `apart` from each other: within its host, or over the host's
/// network, which it shares with the rings of its neighbours.
double ring_rate(const Machine& machine, std::int64_t ranks, std::int64_t apart) {
  if (ranks * apart <= machine.cards) return machine.link;
  const auto rings = static_cast<double>(std::min(apart, machine.cards));
  return std::min(machine.link, machine.network / rings);
}

}  // namespace

Volume volume_of(const ModelShape& shape, const Way& way) {
  Volume sum;
  const auto m = way.micro_batches;
  for (std::size_t i = 0; i < shape.units.size(); ++i) {
    const auto each = once(shape.units[i], way);
    const bool again = i > 0 && way.reshard_after_forward;
    sum.gather += each.gather * (keeps(way) ? 1 : m * (again ? 2 : 1));
    sum.reduce += each.reduce * (way.reduce_every_micro_batch ? m : 1);
    sum.copies += each.copies;
  }
  return sum;
}

StepShape step_shape(const ModelShape& shape, const Way& way) {
  StepShape step{.units = {},
                 .micro_batches = way.micro_batches,
                 .gather_again_in_backward = way.reshard_after_forward,
                 .reduce_every_micro_batch = way.reduce_every_micro_batch,
                 .keep_gathered = keeps(way),
                 .small_collectives = way.ranks > 1 ? 2 : 0};
  std::int64_t trained = 0, encoded = 0, added_up = 0;
  for (std::size_t i = 0; i < shape.units.size(); ++i) {
    auto work = work_of(shape, i, way);
    add_traffic(work, shape.units[i], way);
    step.units.push_back(std::move(work));
    trained += kept_of(shape.units[i], way).first;
    added_up += sum_bytes(shape.units[i], way);
    for (const auto& flat : flats_of(shape.units[i], way.shard)) {
      encoded += flat.stored() == Stored::Plain ? 0 : flat.padded;
    }
  }
  if (way.shard == 1 && way.ranks > 1) {
    step.bucket_bytes = 2 * kBucket * (way.ranks - 1) / way.ranks;
    step.first_bucket_bytes = 2 * kFirstBucket * (way.ranks - 1) / way.ranks;
  }
  if (way.offload_gradients && !way.offload_parameters) step.offload_bytes += trained * kReducedBytes;
  if (way.offload_moments && !way.offload_parameters) step.offload_bytes += 4 * trained * 4;
  // Offloaded parameters are stepped by the host.
  step.optimizer_bytes = trained * kOptimizerBytes * (way.offload_parameters ? 20 : 1);
  // Sums are memory's time too, each time that gradients are reduced.
  step.optimizer_bytes += added_up * (way.reduce_every_micro_batch ? way.micro_batches : 1);
  // Decoding is memory's time too, each time that a unit becomes whole; for ddp as well.
  const auto gathers = keeps(way) ? 1 : way.micro_batches * (way.reshard_after_forward ? 2 : 1);
  const auto each = way.batch.kernels == Kernels::Host ? kDecodeBytesOfHost : kDecodeBytesOfCuda;
  step.optimizer_bytes += encoded * each * gathers;
  return step;
}

Rates rates_of(const Way& way, const Machine& machine) {
  const bool shards = way.shard > 1, host = way.batch.kernels == Kernels::Host;
  return {.flops = way.narrow() ? machine.flops : machine.flops / 2,
          .link_bytes_per_second = ring_rate(machine, shards ? way.shard : way.ranks, 1),
          .link_latency_seconds = machine.latency,
          .bus_bytes_per_second = machine.bus,
          .memory_bytes_per_second = machine.memory_rate,
          .copies_bytes_per_second = way.shard > machine.cards ? 0 : ring_rate(machine, way.copies(), way.shard),
          .copies_latency_seconds = machine.latency,
          // Gloo runs two at once, on the cores that compute.
          .collectives_at_once = host ? 2 : 1,
          .computing_lost_to_transfers = host ? 1.0 : 0.0};
}

StepTime step_time(const ModelShape& shape, const Way& way, const Machine& machine) {
  return simulate(step_shape(shape, way), rates_of(way, machine));
}

}  // namespace sealift::trainer::plan
