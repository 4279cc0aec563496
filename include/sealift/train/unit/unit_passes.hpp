// SPDX-License-Identifier: Apache-2.0
// What a forward and a backward pass do to all units of a model: the bodies of `Session`.
// Units call them; `parallel` calls `reset`.
// A callback at the end of autograd's pass closes units whose calls did not close them, and frees what is left.
#pragma once

#include <sealift/train/comm/broadcast.hpp>
#include <sealift/train/unit/unit_graph.hpp>

#include <torch/csrc/autograd/engine.h>

namespace sealift::train {

inline void Session::enter_forward(const Unit& unit, bool training) {
  if (detail::in_graph_task()) return;
  if (in_backward) reset();
  if (!unit.is_root()) return;
  order.start_forward();
  if (!continues) {
    for (auto& each : units) each->reshard();
  }
  if (training && !buffers.empty() && !continues) broadcast_together(groups.world, buffers, "buffers");
}

inline void Session::enter_backward() {
  // A backward inside this backward (recomputation) must not end it.
  if (std::exchange(in_backward, true)) return;
  ++pass;
  reducer.begin_pass(sync, sync_copies);
  torch::autograd::Engine::get_default_engine().queue_callback([this] { finish_backward(); });
}

inline void Session::finish_backward() {
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    (*unit)->is_open() ? (*unit)->close() : (*unit)->reset_backward();
    if (!keep_after_backward) (*unit)->reshard();
  }
  reducer.end_pass();
  const bool pending = std::any_of(units.begin(), units.end(), [](const auto& unit) { return unit->live_calls() > 0; });
  if (!pending) order.forget_calls();
  in_backward = false;
  if (!sync || keep_after_backward) return;
  // A job that has memory for the whole model in a step may keep it for the next one; others get it back.
  if (!keep_after_forward) detail::BufferPool::instance().release_kept();
  keep_after_forward = continues = false;
  groups.set_step(++step);
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
      flat->start_unshard();
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
  in_backward = continues = false;
}

}  // namespace sealift::train
