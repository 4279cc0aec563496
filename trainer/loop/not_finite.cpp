// SPDX-License-Identifier: Apache-2.0
// The search for what was not finite, in a step that is done again.
// See not_finite.hpp.
// A hook on a parameter sees the gradient of this rank before the engine takes it, whatever the parallel method.
#include "trainer/loop/not_finite.hpp"

namespace sealift::trainer {
namespace {

bool is_finite(const at::Tensor& tensor) {
  return !tensor.is_floating_point() || tensor.detach().isfinite().all().item<bool>();
}

/// What this rank has seen of its own; empty: nothing bad.
struct Seen {
  std::string loss, unit, gradient, weights;

  std::string text() const {
    std::string all;
    for (const auto* part : {&weights, &loss, &unit, &gradient}) {
      if (!part->empty()) all += (all.empty() ? "" : ", ") + *part;
    }
    return all;
  }
};

/// Looks at the outputs of units and at the gradients of parameters while it lives.
class Watch {
 public:
  Watch(Training& training, const torch::nn::Module& model, Seen& seen) : training_(training) {
    training.parallel.look_at_outputs([&seen](const std::string& unit, const at::Tensor& output) {
      if (seen.unit.empty() && !is_finite(output)) seen.unit = "first in the output of unit " + unit;
    });
    for (const auto& item : model.named_parameters()) {
      if (!item.value().requires_grad()) continue;
      auto& parameter = parameters_.emplace_back(item.value());
      hooks_.push_back(parameter.register_hook([&seen, name = item.key()](const at::Tensor& gradient) {
        if (seen.gradient.empty() && !is_finite(gradient)) {
          seen.gradient = "first in backward in the gradient of " + name;
        }
      }));
    }
  }
  ~Watch() {
    training_.parallel.look_at_outputs({});
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].remove_hook(hooks_[i]);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Training& training_;
  std::vector<at::Tensor> parameters_;
  std::vector<unsigned> hooks_;
};

std::string first_bad_weights(const train::Parallel& parallel) {
  for (const auto& parameter : parallel.parameters()) {
    if (parameter.shard.numel() > 0 && !is_finite(parameter.shard)) {
      return "the values of " + parameter.name + " were not finite before the step";
    }
  }
  return "";
}

void do_again(Training& training, Job& job, std::int64_t micro_batches, Seen& seen) {
  job.begin_again();
  for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
    training.parallel.set_micro_batch(micro, micro_batches);
    const bool nothing_yet = seen.text().empty() || seen.text() == seen.weights;
    const auto loss = job.loss_of(micro);
    const bool bad_loss = !is_finite(loss);
    if (bad_loss && seen.loss.empty()) seen.loss = c10::str("its loss is ", loss.detach().item<double>());
    training.scaler.scale(loss).backward();
    if (!nothing_yet || (!bad_loss && seen.unit.empty() && seen.gradient.empty())) continue;
    auto& text = bad_loss ? seen.loss : !seen.unit.empty() ? seen.unit : seen.gradient;
    text += c10::str(" in micro-batch ", micro, job.rows_of(micro));
  }
}

}  // namespace

RandomStates random_states(const train::Parallel& parallel) {
  RandomStates states;
  for (auto& [name, generator] : train::detail::generators(parallel)) {
    const std::lock_guard lock(generator.mutex());
    states.emplace_back(generator, generator.get_state());
  }
  return states;
}

std::string whose_it_was(Training& training, Job& job, std::int64_t micro_batches, const RandomStates& before) {
  Seen seen;
  {
    at::NoGradGuard no_grad;
    seen.weights = first_bad_weights(training.parallel);
  }
  training.optimizer.zero_grad();
  for (auto [generator, state] : before) {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
  {
    const Watch watch(training, job.model(), seen);
    do_again(training, job, micro_batches, seen);
  }
  training.optimizer.zero_grad();
  const auto texts = train::detail::gather_texts(training.world.world, seen.text());
  std::string all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (!texts[rank].empty()) all += (all.empty() ? "" : "; ") + c10::str("rank ", rank, ": ", texts[rank]);
  }
  return all.empty() ? "each rank's own loss and gradients are finite: it came about in their sum over the ranks" : all;
}

}  // namespace sealift::trainer
