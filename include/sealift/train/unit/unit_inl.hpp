// SPDX-License-Identifier: Apache-2.0
// The bodies of unit.hpp: what a forward and a backward pass do to one unit, then what they do to all units of a model.
// A callback at the end of autograd's pass closes units whose calls did not close them, and frees what is left.
// Mirrored by trainer/plan/memory.cpp and trainer/simulate/step_time.cpp: change both.
#pragma once

#include <sealift/train/comm/broadcast.hpp>
#include <sealift/train/unit/unit.hpp>

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

namespace sealift::train {

SEALIFT_BODY Session::Session(const Policy& policy, Groups with)
    : policy(policy),
      groups(std::move(with)),
      memory(policy.stable_addresses ? std::make_shared<detail::SteadyBuffers>() : nullptr),
      reducer(groups, policy, memory),
      holders(groups.shard) {}

namespace detail {

SEALIFT_BODY bool in_graph_task() {
  return torch::autograd::get_current_graph_task_id() != -1;
}

}  // namespace detail

SEALIFT_BODY Unit::Forward::Forward(const Unit& unit)
    : session(*unit.session_), observed(*session.groups.observers, Activity::Forward, unit.label()) {
  ++session.forwards;
}

SEALIFT_BODY Unit::Unit(std::string path, std::size_t number, Session* session, Options options)
    : path_(std::move(path)),
      label_(path_.empty() ? "root" : path_),
      number_(number),
      session_(session),
      options_(std::move(options)) {}

SEALIFT_BODY void Unit::before_forward(bool training) {
  session_->enter_forward(*this, training);
  const bool again = detail::in_graph_task();  // by a recomputation
  for (auto& flat : flats_) {
    again ? flat->unshard() : flat->unshard(session_->epoch);
    TORCH_CHECK(again || !flat->is_outdated(), "the shards of unit '", label_,
                "' were stepped while its parameters stayed gathered, by gather_parameters() or between micro-batches; "
                "end that scope, or that step, before the optimizer's");
  }
  if (again || (flats_.empty() && !is_root())) return;
  // Units that stay gathered until the last micro-batch may all be gathered at once.
  const auto depth = session_->pass.keep && session_->policy.forward_prefetch > 0
                         ? session_->units.size()
                         : static_cast<std::size_t>(session_->policy.forward_prefetch);
  const auto next = session_->order.before_forward(number_, depth, at::GradMode::is_enabled());
  session_->prefetch(forward_prefetch_ ? *forward_prefetch_ : next);
}

SEALIFT_BODY void Unit::before_backward(detail::Call& call) {
  session_->enter_backward();
  if (flats_.empty()) return;
  // The root's backward is the whole pass, which the session tells.
  if (!std::exchange(in_backward_, true) && !is_root()) session_->groups.observers->begin(Activity::Backward, label_);
  const bool first = std::exchange(call.pass, session_->passes) != session_->passes;
  if (first) ++opened_;
  if (!call.before_inputs) call.live = false;
  for (auto& flat : flats_) flat->unshard();
  if (!first) return;
  const auto depth = static_cast<std::size_t>(session_->policy.backward_prefetch);
  const auto next = session_->order.before_backward(call.place, depth);
  session_->prefetch(backward_prefetch_ ? *backward_prefetch_ : next);
}

SEALIFT_BODY void Unit::on_gradient(ParameterId id) {
  session_->enter_backward();
  session_->reducer.collect(id);
}

SEALIFT_BODY void Unit::after_products(ParameterId id) {
  session_->enter_backward();
  session_->reducer.has_all(id);
}

SEALIFT_BODY bool Unit::on_product(ParameterId id, const at::Tensor& left, const at::Tensor& right) {
  session_->enter_backward();
  return session_->reducer.collect_product(id, left, right);
}

SEALIFT_BODY void Unit::after_inputs(detail::Call& call) {
  call.live = false;
  if (call.pass != session_->passes) return;  // no output of it had a gradient
  ++closed_;
  close_when_done();
}

SEALIFT_BODY void Unit::await_calls(const std::unordered_set<torch::autograd::Node*>& graph) {
  std::erase_if(calls_, [](const auto& call) { return call.expired(); });
  for (const auto& each : calls_) {
    const auto call = each.lock();
    if (!call || !call->live) continue;
    auto* node = call->before_inputs ? call->before_inputs : call->after_outputs;
    if (graph.contains(node)) call->awaited_in = session_->passes;
  }
}

SEALIFT_BODY bool Unit::has_calls_of_step(std::int64_t step) const {
  return any_call([&](const auto& call) { return call.step == step; });
}

SEALIFT_BODY void Unit::close() {
  reset_backward();
  if (!session_->keeps_after_backward()) reshard();
  for (const auto flat : gradients_) session_->reducer.close(flat);
}

SEALIFT_BODY void Unit::reset_backward() {
  if (std::exchange(in_backward_, false) && !is_root()) session_->groups.observers->end(Activity::Backward, label_);
  opened_ = closed_ = 0;
}

SEALIFT_BODY void Unit::reshard() {
  if (session_->holds > 0) return;
  for (auto& flat : flats_) flat->reshard();
}

template <class Such>
bool Unit::any_call(const Such& such) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const auto& each) {
    const auto call = each.lock();
    return call && call->live && such(*call);
  });
}

SEALIFT_BODY void Unit::close_when_done() {
  const auto awaited = [&](const auto& call) { return call.awaited_in == session_->passes; };
  if (in_backward_ && closed_ == opened_ && !any_call(awaited)) close();
}

// What a forward and a backward pass do to all units of a model.

SEALIFT_BODY void Session::enter_forward(const Unit& unit, bool training) {
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

SEALIFT_BODY void Session::enter_backward() {
  // A backward inside this backward (recomputation) must not end it.
  if (std::exchange(in_backward, true)) return;
  ++passes;
  groups.observers->begin(Activity::Backward, units.front()->label());
  reducer.begin_pass(pass.reduce, pass.over_copies);
  const auto* graph = torch::autograd::get_current_graph_task_nodes_in_graph();
  for (auto& unit : units) unit->await_calls(*graph);
  torch::autograd::Engine::get_default_engine().queue_callback([this] { finish_backward(); });
}

SEALIFT_BODY void Session::finish_backward() {
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

SEALIFT_BODY void Session::prefetch(const std::vector<std::size_t>& numbers) {
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

SEALIFT_BODY void Session::reset() {
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
