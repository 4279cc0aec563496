// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.hpp"

#include "plan/pool.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>

namespace sealift::trainer::plan {
namespace {

constexpr std::int64_t kReduceBytes = 4;  // gradients are summed in fp32
/// Of CUDA, assumed until a GPU has shown it: context, kernels and NCCL's channels, and what rounding of blocks loses.
constexpr std::int64_t kCudaContext = std::int64_t{900} << 20;
constexpr std::int64_t kCudaSlackPercent = 3;

/// The buffers that a channel over Gloo keeps: at most two (comm/channel.hpp).
class ChannelBuffers {
 public:
  explicit ChannelBuffers(Meter& meter) : meter_(&meter) {}
  std::int64_t take(std::int64_t bytes) {
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
  void give(std::int64_t bytes) {
    spare_.push_back(bytes);
    if (spare_.size() <= 2) return;
    const auto least = std::min_element(spare_.begin(), spare_.end());
    meter_->remove(Part::Buffers, *least);
    spare_.erase(least);
  }

 private:
  Meter* meter_;
  std::vector<std::int64_t> spare_;
};

/// One unit's memory through a step: flat_param.hpp and flat_gradient.hpp in numbers.
struct Unit {
  std::vector<FlatShape> flats;
  bool in_flat = false;  ///< what is plain too: what is encoded always is
  bool is_root = false;
  std::int64_t trained = 0;  ///< elements of trained flats, padded
  std::int64_t shards = 1;

  enum { Sharded, Gathering, Whole } residence = Sharded;
  bool has_gradient = false, has_shard_gradient = false;
  std::int64_t late = 0;    ///< bytes of gradients that wait on their parameters
  std::int64_t plain = 0;   ///< ... that are left there
  std::int64_t copies = 0;  ///< ... of means that wait on the host
  std::int64_t buffer = 0;  ///< of the reduction in flight
};

class Step {
 public:
  Step(const ModelShape& shape, const Way& way)
      : shape_(&shape), way_(way), pool_(meter_, way.batch.kernels == Kernels::Host), channel_(meter_) {
    for (const auto& unit : shape.units) add(unit);
    if (way.batch.kernels == Kernels::Cuda) meter_.add(Part::Buffers, kCudaContext);
  }

  RankMemory peak() {
    for (int step = 0; step < 2; ++step) {
      meter_.restart();
      run();
    }
    const auto& p = meter_.peak();
    RankMemory memory{.parameters = p[0],
                      .gradients = p[1],
                      .moments = p[2],
                      .gathered = p[3],
                      .activations = p[4],
                      .logits = p[5],
                      .buffers = p[6],
                      .slack = p[7],
                      .host = most_host_};
    if (way_.batch.kernels == Kernels::Cuda) memory.slack += (memory.sum() - kCudaContext) * kCudaSlackPercent / 100;
    return memory;
  }

 private:
  bool offloads() const { return way_.batch.kernels == Kernels::Cuda; }
  bool keeps() const { return way_.keep_gathered && way_.micro_batches > 1 && way_.shard > 1; }
  std::int64_t wide(std::int64_t numel) const { return numel * way_.batch.compute_bytes; }

  /// What is there between steps: shards, moments, and buffers of gradients that are not sharded.
  void add(const UnitShape& shape) {
    Unit unit{.flats = flats_of(shape, way_.shard), .is_root = units_.empty(), .shards = way_.shard};
    unit.in_flat = way_.method != Method::None && (way_.shard > 1 || way_.narrow() || way_.offload_parameters);
    for (const auto& flat : unit.flats) {
      const bool whole = !is_gathered(unit, flat);
      std::int64_t kept = flat.kept_bytes();
      if (whole) {
        kept = 0;
        for (const auto& each : flat.parameters) kept += each.numel * each.element_bytes;
      }
      keep(Part::Parameters, kept, way_.offload_parameters);
      meter_.add(Part::Parameters, flat.statistics_bytes());
      if (!flat.trained()) continue;
      unit.trained += flat.padded;
      keep(Part::Moments, 2 * kept, way_.offload_moments || way_.offload_parameters);
      if (unit.in_flat && way_.shard == 1) pool_.take(Part::Gradients, flat.padded * kReduceBytes);
      if (!unit.in_flat && way_.ranks > 1) pool_.take(Part::Gradients, kept);
    }
    unit.has_gradient = unit.in_flat && way_.shard == 1;
    units_.push_back(std::move(unit));
  }

  void keep(Part part, std::int64_t bytes, bool on_host) {
    if (on_host && offloads()) {
      to_host(bytes);
    } else {
      meter_.add(part, bytes);
    }
  }

  static bool is_gathered(const Unit& unit, const FlatShape& flat) {
    return unit.in_flat || flat.stored() != Stored::Plain;
  }

  void to_host(std::int64_t bytes) { most_host_ = std::max(most_host_, host_ += bytes); }

  void start_gather(Unit& unit) {
    if (unit.residence != Unit::Sharded) return;
    unit.residence = Unit::Gathering;
    for (const auto& flat : unit.flats) {
      if (!is_gathered(unit, flat)) continue;
      pool_.take(Part::Gathered, wide(flat.padded));
      meter_.add(Part::Buffers, sent(flat));
      if (flat.stored() != Stored::Plain && flat.shards > 1) pool_.take(Part::Buffers, flat.kept_bytes() * flat.shards);
    }
  }

  /// What a gather holds of the shard: cast, or fetched from the host.
  std::int64_t sent(const FlatShape& flat) const {
    const auto fetched = way_.offload_parameters && offloads() ? flat.kept_bytes() : 0;
    const bool casts =
        flat.stored() == Stored::Plain && flat.parameters.front().element_bytes != way_.batch.compute_bytes;
    return fetched + (casts && flat.shards > 1 ? wide(flat.shard()) : 0);
  }

  void gather(Unit& unit) {
    start_gather(unit);
    if (unit.residence != Unit::Gathering) return;
    unit.residence = Unit::Whole;
    for (const auto& flat : unit.flats) {
      if (!is_gathered(unit, flat)) continue;
      meter_.remove(Part::Buffers, sent(flat));
      if (flat.stored() != Stored::Plain && flat.shards > 1) pool_.give(Part::Buffers, flat.kept_bytes() * flat.shards);
    }
  }

  void reshard(Unit& unit) {
    gather_if_started(unit);
    if (unit.residence != Unit::Whole) return;
    unit.residence = Unit::Sharded;
    for (const auto& flat : unit.flats) {
      if (is_gathered(unit, flat)) pool_.give(Part::Gathered, wide(flat.padded));
    }
  }
  void gather_if_started(Unit& unit) {
    if (unit.residence == Unit::Gathering) gather(unit);
  }

  /// A parameter's gradient goes into the unit's buffer.
  void collect(Unit& unit, std::int64_t numel) {
    meter_.add(Part::Gradients, wide(numel));
    if (unit.in_flat && unit.is_root && way_.narrow()) {
      unit.late += wide(numel);
      return;
    }
    if (unit.in_flat) make_room(unit);
    if (!unit.in_flat && way_.ranks == 1) {
      if (unit.has_shard_gradient) meter_.remove(Part::Gradients, wide(numel));  // added to an earlier one
      if (!unit.has_shard_gradient) unit.plain += wide(numel);
      return;
    }
    meter_.remove(Part::Gradients, wide(numel));
  }

  void make_room(Unit& unit) {
    if (unit.has_gradient) return;
    unit.has_gradient = true;
    pool_.take(Part::Gradients, unit.trained * kReduceBytes);
  }

  void settle(Unit& unit) {
    if (unit.late == 0) return;
    make_room(unit);
    meter_.remove(Part::Gradients, unit.late);
    unit.late = 0;
  }

  /// The unit's backward is done: frees it, and begins to reduce its gradients, if they are to be.
  void close(Unit& unit, bool reduces, bool last) {
    if (!keeps() || last) reshard(unit);
    settle(unit);
    if (unit.plain > 0) unit.has_shard_gradient = true;
    if (reduces && unit.shards == 1 && way_.offload_gradients && way_.ranks + unit.in_flat > 1) leave_copies(unit);
    if (!reduces || !unit.in_flat || unit.shards == 1 || !unit.has_gradient) return;
    const std::size_t in_flight = way_.copies() > 1 ? 1 : 0;
    while (running_.size() > in_flight) finish_oldest();
    if (!running_.empty()) summing(*running_.front());
    const auto shard = unit.trained / unit.shards * kReduceBytes;
    meter_.add(Part::Gradients, shard);
    if (way_.batch.kernels == Kernels::Host) unit.buffer = channel_.take(shard * (unit.shards - 1));
    running_.push_back(&unit);
  }

  /// What is not sharded stays in its buffer, and its mean waits on the host beside.
  void leave_copies(Unit& unit) {
    if (unit.copies > 0 || unit.trained == 0) return;
    unit.copies = unit.trained * kReduceBytes;
    offloads() ? to_host(unit.copies) : meter_.add(Part::Gradients, unit.copies);
  }

  /// The sum over the shard group is there: the whole goes.
  void summing(Unit& unit) {
    if (!unit.has_gradient) return;
    unit.has_gradient = false;
    pool_.give(Part::Gradients, unit.trained * kReduceBytes);
    if (unit.buffer > 0) channel_.give(std::exchange(unit.buffer, 0));
  }

  void finish_oldest() {
    auto& unit = *running_.front();
    running_.pop_front();
    summing(unit);
    const auto shard = unit.trained / unit.shards * kReduceBytes;
    const bool leaves = (way_.offload_gradients || way_.offload_parameters) && offloads();
    if (way_.offload_gradients && !offloads()) meter_.touch(Part::Gradients, shard);  // a copy of its own
    if (leaves && !unit.has_shard_gradient) to_host(shard);
    if (leaves || unit.has_shard_gradient) meter_.remove(Part::Gradients, shard);
    unit.has_shard_gradient = true;
  }

  void zero_gradients() {
    for (auto& unit : units_) {
      const auto shard = unit.trained / unit.shards * kReduceBytes;
      const bool left = (way_.offload_gradients || way_.offload_parameters) && offloads();
      if (std::exchange(unit.has_shard_gradient, false) && unit.in_flat && unit.shards > 1) {
        left ? to_host(-shard) : meter_.remove(Part::Gradients, shard);
      }
      meter_.remove(Part::Gradients, std::exchange(unit.plain, 0));
      const auto copies = std::exchange(unit.copies, 0);
      offloads() ? to_host(-copies) : meter_.remove(Part::Gradients, copies);
    }
  }

  void run() {
    const auto tokens = way_.batch.tokens();
    const auto tables = tokens * (8 * 4 + 4 * shape_->decoder.head_dim);  // ids and the like; cos and sin
    for (std::int64_t micro = 0; micro < way_.micro_batches; ++micro) {
      meter_.add(Part::Activations, tables);
      micro_batch(micro + 1 == way_.micro_batches);
      meter_.remove(Part::Activations, tables);
    }
    zero_gradients();  // after the optimizer, which needs no more than is there
  }

  void micro_batch(bool last) {
    Unit* current = &units_.front();
    Tape tape(meter_, [&](std::int64_t numel) { collect(*current, numel); });
    DecoderTape decoder(tape, *shape_, way_.batch);
    const auto layers = static_cast<std::size_t>(shape_->decoder.layers);
    const bool adapts = shape_->lora_rank > 0;
    std::vector<std::size_t> marks;
    std::vector<Tape::Id> outputs;
    gather(units_.front());
    outputs.push_back(decoder.embed());
    for (std::size_t i = 0; i < layers; ++i) {
      auto& unit = units_[i + 1];
      gather(unit);
      if (keeps()) {
        for (auto& each : units_) start_gather(each);
      } else if (i + 1 < layers) {
        start_gather(units_[i + 2]);
      }
      marks.push_back(tape.nodes());
      const bool needs = i > 0 || !adapts;
      tape.records = !way_.recompute;
      const auto x = outputs.back();
      outputs.push_back(decoder.layer(x, static_cast<std::int64_t>(i), needs));
      tape.records = true;
      if (way_.recompute) tape.save(x);
      tape.drop(x);
      if (!keeps() && way_.reshard_after_forward) reshard(unit);
    }
    marks.push_back(tape.nodes());
    decoder.loss(outputs.back(), layers > 0 || !adapts);
    tape.drop(outputs.back());

    tape.backward(marks.back());
    const bool reduces = last || way_.reduce_every_micro_batch;
    for (auto i = layers; i-- > 0;) {
      auto& unit = units_[i + 1];
      gather(unit);
      if (i > 0) start_gather(units_[i]);
      current = &unit;
      const bool needs = i > 0 || !adapts;
      way_.recompute ? again(tape, outputs[i], outputs[i + 1], static_cast<std::int64_t>(i), needs, current)
                     : tape.backward(marks[i]);
      close(unit, reduces, last);
    }
    current = &units_.front();
    if (!adapts) tape.backward();
    if (!adapts && shape_->decoder.tied_head) {
      meter_.remove(Part::Gradients, wide(shape_->decoder.vocabulary * shape_->decoder.width));
    }
    close(units_.front(), reduces, last);
    while (!running_.empty()) finish_oldest();
    if (last && !keeps()) pool_.release_kept();
  }

  /// A layer's forward again, with what it keeps, and its backward.
  void again(Tape& outer, Tape::Id x, Tape::Id out, std::int64_t number, bool needs, Unit*& current) {
    Tape tape(meter_, [&](std::int64_t numel) { collect(*current, numel); });
    DecoderTape decoder(tape, *shape_, way_.batch);
    const auto input = tape.make(0);
    const auto output = decoder.layer(input, number, needs);
    tape.lend(output);
    tape.drop(output);
    tape.backward();
    const auto bytes = wide(way_.batch.tokens() * shape_->decoder.width);
    outer.free_gradient(out);
    if (needs) {
      tape.free_gradient(input);
      outer.give(x, bytes);
    }
    outer.free_saved(x);
  }

  const ModelShape* shape_;
  Way way_;
  Meter meter_;
  Pool pool_;
  ChannelBuffers channel_;
  std::vector<Unit> units_;
  std::deque<Unit*> running_;
  std::int64_t host_ = 0, most_host_ = 0;
};

/// Throws where one tensor would have more than 2^45 bytes, or the model more than 4096 layers: sums stay below 2^63.
void check_sizes(const DecoderShape& shape, const Batch& batch) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 45, kMostLayers = 4096;
  const auto widest = std::max({shape.width, shape.mlp_width, shape.heads * shape.head_dim,
                                shape.per_token * shape.expert_width, shape.per_token * shape.width, shape.experts});
  std::int64_t tokens = 0, bytes = 0;
  const bool too_many = __builtin_mul_overflow(batch.rows, batch.length, &tokens) ||
                        __builtin_mul_overflow(tokens, 8 * widest, &bytes) || bytes > kMostBytes;
  if (too_many || shape.layers > kMostLayers) {
    throw std::invalid_argument("a micro-batch of " + std::to_string(batch.rows) + " rows of " +
                                std::to_string(batch.length) + " tokens through " + std::to_string(shape.layers) +
                                " layers of width " + std::to_string(widest) +
                                " is more than can be planned; ask for fewer tokens");
  }
}

}  // namespace

std::string name_of(Method method) {
  switch (method) {
    case Method::None:
      return "none";
    case Method::Ddp:
      return "ddp";
    case Method::Fsdp:
      return "fsdp";
    case Method::Hsdp:
      return "hsdp";
  }
  throw std::invalid_argument("unknown method");
}

RankMemory predict_memory(const ModelShape& shape, const Way& way) {
  if (shape.units.size() != static_cast<std::size_t>(shape.decoder.layers) + 1) {
    throw std::invalid_argument("the plan knows units by block: expected a root and " +
                                std::to_string(shape.decoder.layers) + " layers, got " +
                                std::to_string(shape.units.size()) + " units; leave wrapping_strategy at by_block");
  }
  check_sizes(shape.decoder, way.batch);
  return Step(shape, way).peak();
}

bool keep_fits(const ModelShape& shape, const Way& way, std::int64_t free) {
  if (way.shard == 1 || way.micro_batches == 1) return false;
  std::int64_t kept = 0, held = 0, ddp = 0;
  for (const auto& unit : shape.units) {
    for (const auto& each : unit.parameters) {
      const auto own = stored_bytes_of(each.stored, each.numel, each.element_bytes);
      const auto whole = each.numel * way.batch.compute_bytes, gradient = each.trained ? each.numel * kReduceBytes : 0;
      const auto moments = each.trained ? 2 * own : 0;
      const bool copies = each.stored == Stored::Plain && way.narrow() && each.element_bytes != way.batch.compute_bytes;
      kept += whole + gradient;
      held += whole + gradient + (own + moments) / way.shard;
      ddp += own + (copies ? whole : 0) + gradient + moments;
    }
  }
  return kept <= free / 2 && held <= ddp;
}

}  // namespace sealift::trainer::plan
