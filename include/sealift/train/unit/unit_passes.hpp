// SPDX-License-Identifier: Apache-2.0
// What a forward and a backward pass do to all units of a model: the bodies of `Session`.
// Units call them; `parallel` calls `reset`.
// A callback at the end of autograd's pass closes units whose calls did not close them, and frees what is left.
// Mirrored by trainer/plan/memory.cpp and trainer/simulate/step_time.cpp: change both.
#pragma once

#include <sealift/train/comm/broadcast.hpp>
#include <sealift/train/unit/unit_graph.hpp>

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/engine.h>

namespace sealift::train {

inline void Session::enter_forward(const Unit& unit, bool training) {
  if (detail::in_graph_task()) return;
  if (in_backward) reset();
  if (forwards > 1) return;  // within another unit's
  const bool records = at::GradMode::is_enabled();
  for (const auto& [name, parameter] : frozen) {
    TORCH_CHECK(!records || !parameter.requires_grad(), "parameter '", name,
                "' was unfrozen after parallelize(), which made no gradient for it; call parallelize() with everything "
                "trainable that is to be trained later, and freeze by set_requires_grad(false) after it");
  }
  // Values that were gathered before may be older than the optimizer's last step.
  if (holds == 0 && (pass.first || !records)) ++epoch;
  const bool first = pass.first;
  if (records && pass.keep) pass.first = false;
  if (!unit.is_root()) return;
  order.start_forward();
  if (!first) return;
  for (auto& each : units) each->reshard();
  if (training && !buffers.empty()) broadcast_together(groups.world, buffers, "buffers");
}

inline void Session::enter_backward() {
  // A backward inside this backward (recomputation) must not end it.
  if (std::exchange(in_backward, true)) return;
  ++passes;
  groups.observers->begin(Activity::Backward, units.front()->label());
  reducer.begin_pass(pass.reduce, pass.over_copies);
  const auto* graph = torch::autograd::get_current_graph_task_nodes_in_graph();
  for (auto& unit : units) unit->await_calls(*graph);
  torch::autograd::Engine::get_default_engine().queue_callback([this] { finish_backward(); });
}

inline void Session::finish_backward() {
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    (*unit)->is_open() ? (*unit)->close() : (*unit)->reset_backward();
    if (!keeps_after_backward()) (*unit)->reshard();
  }
  reducer.end_pass();
  groups.observers->end(Activity::Backward, units.front()->label());
  if (std::none_of(units.begin(), units.end(), [&](const auto& unit) { return unit->has_calls_of_step(step); })) {
    order.forget_calls();
  }
  in_backward = false;
  if (pass.reduce && pass.over_copies && pass.last) reducer.flush();
  reducer.set_marks();
  if (!pass.reduce || keeps_after_backward()) return;
  // A job that has memory for the whole model in a step may keep it for the next one; others get it back.
  if (!pass.keep) detail::BufferPool::instance().release_kept();
  pass.keep = false;
  pass.first = true;
  groups.set_step(++step);
  groups.observers->step_ended(step);
}

inline void Session::prefetch(const std::vector<std::size_t>& numbers) {
  std::size_t ahead = 0;
  for (const auto& unit : units) {
    ahead += std::any_of(unit->flats().begin(), unit->flats().end(),
                         [](const auto& flat) { return flat->residence() == Residence::Gathering; });
  }
  for (const auto number : numbers) {
    if (ahead >= numbers.size()) return;
    bool started = false;
    for (const auto& flat : units[number]->flats()) {
      started |= !flat->has_memory();
      detail::in_graph_task() ? flat->start_unshard() : flat->start_unshard(epoch);
    }
    ahead += started;
  }
}

inline void Session::reset() {
  reducer.reset();
  for (auto& unit : units) {
    unit->reset_backward();
    unit->reshard();
  }
  order.forget_calls();
  if (std::exchange(in_backward, false)) groups.observers->end(Activity::Backward, units.front()->label());
  pass.first = true;
  reducer.set_marks();  // for gradients of earlier passes, and of units that were done before the failure
  // A cast that autocast kept from the failed forward is older than any node of the next one. Autograd would run its
  // backward last, after the unit was reduced, and only on the ranks that came as far as this cast.
  at::autocast::clear_cache();
}

}  // namespace sealift::train
