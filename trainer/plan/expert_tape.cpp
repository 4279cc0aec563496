// SPDX-License-Identifier: Apache-2.0
// A sparse block on the tape: models/moe.cpp, line by line.
#include "trainer/plan/decoder_tape.hpp"

namespace sealift::trainer::plan {

using Id = Tape::Id;

/// A sigmoid's are computed in fp32, from tokens and weights that are made so.
Id DecoderTape::router_logits(Id y, bool needs) {
  const auto& d = shape_->decoder;
  const auto tokens = batch_.tokens(), weights = 4 * d.experts * d.width, inputs = 4 * tokens * d.width;
  const bool widens = d.sigmoid_router && batch_.compute_bytes < 4, trains = !adapts();
  if (!widens)
    return linear(y, {.in = d.width, .out = d.experts, .bias = d.router_bias, .adapted = false}, tokens, needs);
  const auto wide = made_of({y}, inputs), wide_weights = t_->make(weights), logits = t_->make(4 * tokens * d.experts);
  if (trains) t_->save(wide);
  t_->save(wide_weights);
  t_->node([=, this] {
    t_->give(wide, inputs, trains ? weights : 0);
    t_->free_saved(wide_weights);
    if (trains) t_->free_saved(wide);
    t_->free_gradient(logits);
    if (trains) t_->parameter(d.experts * d.width);
  });
  t_->drop(wide);
  t_->drop(wide_weights);
  return logits;
}

std::vector<Id> DecoderTape::route(Id y, bool needs) {
  const auto& d = shape_->decoder;
  const auto tokens = batch_.tokens(), scores = tokens * d.experts;
  const auto logits = router_logits(y, needs);
  const auto of_all = d.scales_inputs ? 0 : 4 * scores;  // chances; nothing keeps those of the best alone
  const auto chances = t_->make(of_all);
  t_->save(chances);
  t_->node([=, this] {
    t_->give(logits, t_->bytes(logits), 2 * of_all);
    t_->free_saved(chances);
  });
  t_->drop(logits);
  const auto places = t_->make(8 * tokens * d.per_token * 6);  // choices, orders and their inverses, weights
  t_->save(places);
  t_->node([=, this] { t_->free_saved(places); });
  return {chances, places};
}

Id DecoderTape::rows_of_experts(Id y, bool needs) {
  const auto& d = shape_->decoder;
  const auto own = of(batch_.tokens() * d.width), wide = own * d.per_token;
  const auto scaled = d.scales_inputs ? t_->make(wide) : y;
  if (d.scales_inputs) {
    t_->save(y);
    t_->node([=, this] {
      if (needs) t_->give(y, own, wide);
      t_->free_saved(y);
      t_->free_gradient(scaled);
    });
  }
  const auto sorted = t_->make(wide);
  t_->node([=, this] {
    if (d.scales_inputs) {
      t_->give(scaled, wide);
    } else if (needs) {
      t_->give(y, own, wide);
    }
    t_->free_gradient(sorted);
  });
  if (d.scales_inputs) t_->drop(scaled);
  return sorted;
}

/// Each token's rows for its experts, their hidden layers and answers; all experts are two parameters.
Id DecoderTape::experts(Id y, bool needs) {
  const auto& d = shape_->decoder;
  const auto tokens = batch_.tokens(), rows = tokens * d.per_token;
  const bool trains = !adapts();
  const auto wide = of(rows * d.width), hidden = of(rows * d.expert_width);
  const auto routes = route(y, needs);
  const auto sorted = rows_of_experts(y, needs);
  const auto gate_up = t_->make(2 * hidden);
  if (d.expert_biases) t_->meter().touch(Part::Activations, 2 * hidden);  // each row's
  t_->save(sorted);                                                       // grouped_linear does, whatever is trained
  t_->node([=, this] {
    t_->give(sorted, wide, trains ? of(d.experts * 2 * d.expert_width * d.width) : 0);
    t_->free_saved(sorted);
    t_->free_gradient(gate_up);
    if (trains) t_->parameter(d.experts * 2 * d.expert_width * d.width);
    if (trains && d.expert_biases) t_->parameter(d.experts * 2 * d.expert_width);
  });
  const auto active = t_->make(hidden);
  if (d.clamps) t_->meter().touch(Part::Activations, 2 * hidden);
  t_->save(gate_up);
  t_->node([=, this] {
    const auto beside = d.clamps ? 4 * hidden : 2 * hidden;  // of gate and up, which become one
    t_->meter().touch(Part::Activations, 3 * hidden);
    t_->meter().add(Part::Activations, beside);
    t_->give(gate_up, 2 * hidden);
    t_->meter().remove(Part::Activations, beside);
    t_->free_gradient(active);
    t_->free_saved(gate_up);
  });
  const auto answers = t_->make(wide);
  if (d.expert_biases) t_->meter().touch(Part::Activations, wide);
  t_->save(active);
  t_->node([=, this] {
    t_->give(active, hidden, trains ? of(d.experts * d.expert_width * d.width) : 0);
    t_->free_saved(active);
    t_->free_gradient(answers);
    if (trains) t_->parameter(d.experts * d.expert_width * d.width);
    if (trains && d.expert_biases) t_->parameter(d.experts * d.width);
  });
  const auto ordered = t_->make(wide);
  const bool weighs = !d.scales_inputs;
  if (weighs) t_->save(ordered);
  t_->node([=, this] {
    t_->give(answers, wide);
    if (weighs) t_->free_saved(ordered);
    t_->free_gradient(ordered);
  });
  t_->drop(gate_up), t_->drop(active);
  if (weighs) t_->meter().touch(Part::Activations, wide);  // times the weights
  const auto out = t_->make(of(tokens * d.width));
  t_->node([=, this] {
    t_->give(ordered, weighs || d.per_token > 1 ? wide : 0, weighs ? wide : 0);
    t_->free_gradient(out);
  });
  for (const auto id : {sorted, answers, ordered, routes[0], routes[1]}) t_->drop(id);
  return d.shared_width == 0 ? out : shared_experts(y, out, needs);
}

/// The MLP that all tokens pass, added to the experts' answers.
Id DecoderTape::shared_experts(Id y, Id answers, bool needs) {
  const auto& d = shape_->decoder;
  const auto shared = mlp(y, needs, d.shared_width);
  const auto both = made_of({answers, shared}, of(batch_.tokens() * d.width));
  t_->drop(answers);
  t_->drop(shared);
  return both;
}

}  // namespace sealift::trainer::plan
