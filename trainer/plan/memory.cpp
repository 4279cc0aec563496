// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/memory.hpp"

#include "trainer/plan/engine_memory.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace sealift::trainer::plan {
namespace {

/// Of CUDA, assumed until a GPU has shown it: context, kernels and NCCL's channels, and what rounding of blocks loses.
constexpr std::int64_t kCudaContext = std::int64_t{900} << 20;
constexpr std::int64_t kCudaSlackPercent = 3;

class Step {
 public:
  Step(const ModelShape& shape, const Way& way) : shape_(&shape), way_(way), engine_(shape, way, meter_) {
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
                      .host = engine_.most_on_host()};
    if (way_.batch.kernels == Kernels::Cuda) memory.slack += (memory.sum() - kCudaContext) * kCudaSlackPercent / 100;
    return memory;
  }

 private:
  void run() {
    const auto tokens = way_.batch.tokens();
    const auto tables = tokens * (8 * 4 + 4 * shape_->decoder.head_dim);  // ids and the like; cos and sin
    for (std::int64_t micro = 0; micro < way_.micro_batches; ++micro) {
      meter_.add(Part::Activations, tables);
      micro_batch(micro + 1 == way_.micro_batches);
      meter_.remove(Part::Activations, tables);
    }
    engine_.zero_gradients();  // after the optimizer, which needs no more than is there
  }

  /// Whose gradients are those of unit `current`, which must outlive it.
  Tape tape_of(const std::size_t& current) {
    std::function<void()> product;
    if (engine_.adds_products()) product = [&] { engine_.add_product(current); };
    return Tape(
        meter_, [&](std::int64_t numel) { engine_.collect(current, numel); }, product);
  }

  void micro_batch(bool last) {
    std::size_t current = 0;
    auto tape = tape_of(current);
    DecoderTape decoder(tape, *shape_, way_.batch);
    const auto layers = static_cast<std::size_t>(shape_->decoder.layers);
    const bool adapts = shape_->lora_rank > 0;
    std::vector<std::size_t> marks;
    std::vector<Tape::Id> outputs;
    engine_.gather(0);
    outputs.push_back(decoder.embed());
    for (std::size_t i = 0; i < layers; ++i) {
      engine_.gather(i + 1);
      if (engine_.keeps()) {
        for (std::size_t each = 0; each <= layers; ++each) engine_.start_gather(each);
      } else if (i + 1 < layers) {
        engine_.start_gather(i + 2);
      }
      marks.push_back(tape.nodes());
      const bool needs = i > 0 || !adapts;
      tape.records = !way_.recompute;
      const auto x = outputs.back();
      outputs.push_back(decoder.layer(x, static_cast<std::int64_t>(i), needs));
      tape.records = true;
      if (way_.recompute) tape.save(x);
      tape.drop(x);
      if (!engine_.keeps() && way_.reshard_after_forward) engine_.reshard(i + 1);
    }
    marks.push_back(tape.nodes());
    decoder.loss(outputs.back(), layers > 0 || !adapts);
    if (!way_.recompute) decoder.drop_masks();
    tape.drop(outputs.back());

    tape.backward(marks.back());
    const bool reduces = last || way_.reduce_every_micro_batch;
    for (auto i = layers; i-- > 0;) {
      current = i + 1;
      engine_.gather(current);
      if (i > 0) engine_.start_gather(i);
      const bool needs = i > 0 || !adapts;
      way_.recompute ? again(tape, outputs[i], outputs[i + 1], static_cast<std::int64_t>(i), needs, current)
                     : tape.backward(marks[i]);
      engine_.close(current, reduces, last);
    }
    if (way_.recompute) decoder.drop_masks();
    current = 0;
    if (!adapts) tape.backward();
    if (!adapts && shape_->decoder.tied_head) {
      meter_.remove(Part::Gradients, shape_->decoder.vocabulary * shape_->decoder.width * way_.batch.compute_bytes);
    }
    engine_.close(0, reduces, last);
    engine_.finish_reductions();
    if (last && !engine_.keeps()) engine_.release_kept();
  }

  /// A layer's forward again, with what it keeps, and its backward.
  void again(Tape& outer, Tape::Id x, Tape::Id out, std::int64_t number, bool needs, std::size_t current) {
    auto tape = tape_of(current);
    DecoderTape decoder(tape, *shape_, way_.batch);
    decoder.has_masks = true;
    const auto input = tape.make(0);
    const auto output = decoder.layer(input, number, needs);
    tape.lend(output);
    tape.drop(output);
    tape.backward();
    const auto bytes = way_.batch.tokens() * shape_->decoder.width * way_.batch.compute_bytes;
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
  EngineMemory engine_;
};

/// Bytes of the largest mask at most, or none where no layer has one; -1: they do not fit the number.
std::int64_t mask_bytes(const DecoderShape& shape, const Batch& batch) {
  bool any = false;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) any = any || has_mask(shape, batch, layer);
  std::int64_t bytes = 0;
  const auto side = batch.length + 1;
  if (!any) return 0;
  return __builtin_mul_overflow(side, side, &bytes) || __builtin_mul_overflow(bytes, 8 * batch.rows, &bytes) ? -1
                                                                                                             : bytes;
}

/// Throws where one tensor would have more than 2^45 bytes, or the model more than 4096 layers: sums stay below 2^63.
void check_sizes(const DecoderShape& shape, const Batch& batch) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 45, kMostLayers = 4096;
  const auto widest = std::max({shape.width, shape.mlp_width, shape.heads * shape.head_dim,
                                shape.per_token * shape.expert_width, shape.per_token * shape.width, shape.experts});
  std::int64_t tokens = 0, bytes = 0;
  const bool too_many = __builtin_mul_overflow(batch.rows, batch.length, &tokens) ||
                        __builtin_mul_overflow(tokens, 8 * widest, &bytes) || bytes > kMostBytes;
  const bool too_deep = shape.layers > kMostLayers;
  const auto masks = too_many || too_deep ? 0 : mask_bytes(shape, batch);
  if (too_many || too_deep || masks < 0 || masks > kMostBytes) {
    throw std::invalid_argument("a micro-batch of " + std::to_string(batch.rows) + " rows of " +
                                std::to_string(batch.length) + " tokens through " + std::to_string(shape.layers) +
                                " layers of width " + std::to_string(widest) +
                                " is more than can be planned; ask for fewer tokens");
  }
}

}  // namespace

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
