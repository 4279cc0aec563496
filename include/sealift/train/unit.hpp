// SPDX-License-Identifier: Apache-2.0
// A unit: the parameters that are gathered before a block's forward and backward, and reduced together after it.
// `Shardable` calls it around forward; autograd calls it around backward; it moves its flats and knows no model.
// Autograd's order is the schedule: a hook on a call's outputs opens its backward, a node before its inputs closes it,
// and a callback at the end of the pass closes what is left, so nothing waits for a gradient that never comes.
#pragma once

#include <sealift/train/broadcast.hpp>
#include <sealift/train/call_order.hpp>
#include <sealift/train/reducer.hpp>
#include <sealift/train/tensor_walk.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>

namespace sealift::train {

class Unit;

/// What the units of one model share. Belongs to one thread, as a rank does.
struct Session {
  Session(const Policy& policy, const Groups& groups) : policy(policy), groups(groups), reducer(groups, policy) {}

  Policy policy;
  Groups groups;
  Reducer reducer;
  CallOrder order;
  std::vector<std::unique_ptr<Unit>> units;  ///< the root first, then in the order of the model
  std::vector<at::Tensor> buffers;           ///< to broadcast before a forward in training mode

  bool sync = true;         ///< reduce at the end of this backward; else collect, and reduce with a later one
  bool sync_copies = true;  ///< ... over the copies of hsdp, too
  bool keep_after_forward = false, keep_after_backward = false;  ///< stay gathered, whatever the units' own settings
  bool continues = false;  ///< the next forward is of the step that the last one was of: nothing was stepped
  bool in_backward = false;
  std::int64_t pass = 0;  ///< backward passes begun
  std::int64_t step = 0;  ///< backward passes that ended with everything reduced and freed

  /// Called by everything that happens in a backward pass: the first one asks to be told of its end.
  void enter_backward();
  /// Called by every unit's forward: outside a backward pass, forgets one that an exception cut short, and starts the
  /// root's forward with nothing gathered, since an optimizer may have stepped after a forward that had no backward.
  void enter_forward(const Unit& unit, bool training);
  void finish_backward();
  /// Begins to gather these units, while no more than their number are gathered ahead.
  void prefetch(const std::vector<std::size_t>& numbers);
  /// Back to where a forward may start: nothing gathered, collected or in flight.
  void reset();
};

namespace detail {

/// One call of a unit's forward that will run backward, shared by the autograd nodes that belong to it.
struct Call {
  std::weak_ptr<Unit> unit;
  std::size_t place = 0;   ///< in the order of calls
  bool hooked = false;     ///< a node before its inputs tells when its backward is done
  bool live = true;        ///< its backward is not done; without such a node: has not begun
  std::int64_t pass = -1;  ///< the last backward pass that opened it

  ~Call();
};

inline bool in_graph_task() {
  return torch::autograd::get_current_graph_task_id() != -1;
}

}  // namespace detail

class Unit {
 public:
  struct Options {
    bool reshard_after_forward = true;
    std::int64_t reshard_group = 0;  ///< above 1: keep the part of a group of so many ranks
    MixedPrecision precision = {};
  };

  Unit(std::string path, std::size_t number, Session* session, Options options)
      : path_(std::move(path)), number_(number), session_(session), options_(std::move(options)) {}

  const std::string& path() const { return path_; }
  std::size_t number() const { return number_; }
  bool is_root() const { return number_ == 0; }
  const Options& options() const { return options_; }
  const std::vector<std::unique_ptr<FlatParam>>& flats() const { return flats_; }

  void add_flat(std::unique_ptr<FlatParam> flat) { flats_.push_back(std::move(flat)); }

  /// Listens to the gradients of `slots`, which the reducer knows from number `route` on. `flat` is what reduces them
  /// when this unit closes; null for replicated ones, which the reducer starts by itself.
  void listen(const std::vector<GradientSlot>& slots, std::size_t route, FlatGradient* flat,
              const std::weak_ptr<Unit>& self);

  /// `training` is the module's mode. Parameters are whole when this returns.
  void before_forward(bool training) {
    session_->enter_forward(*this, training);
    for (auto& flat : flats_) flat->unshard();
    if (detail::in_graph_task()) return;
    // What stays gathered until the last micro-batch may as well all be on its way at once.
    const auto depth = session_->keep_after_forward && session_->policy.forward_prefetch > 0
                           ? session_->units.size()
                           : static_cast<std::size_t>(session_->policy.forward_prefetch);
    const auto next = session_->order.before_forward(number_, depth, at::GradMode::is_enabled());
    session_->prefetch(forward_prefetch_ ? *forward_prefetch_ : next);
  }

  /// Makes a forward's arguments what the unit wants: floating tensors in its dtype, all tensors behind one node whose
  /// backward tells that the call's is done. Null when no backward will need the unit.
  template <class... Inputs>
  std::shared_ptr<detail::Call> take_inputs(const std::weak_ptr<Unit>& self, Inputs&... inputs);

  /// `outputs`: a tensor, or tuples, vectors and optionals of them; their gradients announce the unit's backward.
  /// `last`: of the modules that share this unit.
  template <class Outputs>
  void after_forward(Outputs& outputs, const std::shared_ptr<detail::Call>& call, bool last);

  void before_backward(detail::Call& call) {
    session_->enter_backward();
    in_backward_ = true;
    const bool first = std::exchange(call.pass, session_->pass) != session_->pass;
    if (first) ++opened_;
    if (!call.hooked) end_life(call);
    for (auto& flat : flats_) flat->unshard();
    if (!first) return;
    const auto depth = static_cast<std::size_t>(session_->policy.backward_prefetch);
    const auto next = session_->order.before_backward(call.place, depth);
    session_->prefetch(backward_prefetch_ ? *backward_prefetch_ : next);
  }

  void on_gradient(std::size_t route) {
    session_->enter_backward();
    session_->reducer.collect(route);
  }

  /// Everything that leads to the inputs of `call` has run backward.
  void after_inputs(detail::Call& call) {
    end_life(call);
    if (call.pass != session_->pass) return;  // no output of it had a gradient
    ++closed_;
    close_when_done();
  }

  /// Starts the reduction of what was collected and frees the whole parameters.
  void close() {
    reset_backward();
    if (!session_->keep_after_backward) reshard();
    for (auto* gradients : gradients_) session_->reducer.close(*gradients);
  }

  void reset_backward() {
    in_backward_ = false;
    opened_ = closed_ = 0;
  }

  void reshard() {
    for (auto& flat : flats_) flat->reshard();
  }

  bool is_open() const { return in_backward_; }
  std::int64_t live_calls() const { return live_calls_; }

  /// Units to gather while this one runs, instead of those that the order of calls suggests.
  void set_forward_prefetch(std::vector<std::size_t> units) { forward_prefetch_ = std::move(units); }
  void set_backward_prefetch(std::vector<std::size_t> units) { backward_prefetch_ = std::move(units); }

 private:
  friend struct detail::Call;

  void end_life(detail::Call& call) {
    if (std::exchange(call.live, false)) --live_calls_;
  }

  /// A call without a node before its inputs never closes: what it needs is freed at the end of the pass, for nothing
  /// else tells that no recomputation will ask for it once more.
  void close_when_done() {
    if (in_backward_ && closed_ == opened_ && live_calls_ == 0) close();
  }

  std::string path_;
  std::size_t number_;
  Session* session_;
  Options options_;
  std::vector<std::unique_ptr<FlatParam>> flats_;
  std::vector<FlatGradient*> gradients_;  ///< of the trainable flats
  std::optional<std::vector<std::size_t>> forward_prefetch_, backward_prefetch_;

  // Of the backward pass that runs:
  bool in_backward_ = false;
  std::int64_t opened_ = 0, closed_ = 0;      ///< calls
  std::atomic<std::int64_t> live_calls_ = 0;  ///< recorded ones; a graph that is not used dies with its calls
};

namespace detail {

inline Call::~Call() {
  if (auto alive = unit.lock()) alive->end_life(*this);
}

/// Runs after autograd has accumulated a parameter's gradient of this pass.
struct GradientHook final : torch::autograd::PostAccumulateGradHook {
  std::weak_ptr<Unit> unit;
  std::size_t route;

  GradientHook(std::weak_ptr<Unit> unit, std::size_t route) : unit(std::move(unit)), route(route) {}

  void operator()(const at::Tensor&) override {
    if (auto alive = unit.lock()) alive->on_gradient(route);
  }
};

/// The identity before a call's inputs; its backward runs when everything after it has run.
struct InputsNode final : torch::autograd::Node {
  std::shared_ptr<Call> call;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (auto unit = call->unit.lock()) unit->after_inputs(*call);
    return std::move(gradients);
  }
  std::string name() const override { return "SealiftUnitInputs"; }
};

}  // namespace detail

inline void Unit::listen(const std::vector<GradientSlot>& slots, std::size_t route, FlatGradient* flat,
                         const std::weak_ptr<Unit>& self) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(slots[i].parameter,
                                                   std::make_unique<detail::GradientHook>(self, route + i));
  }
  if (flat) gradients_.push_back(flat);
}

template <class... Inputs>
std::shared_ptr<detail::Call> Unit::take_inputs(const std::weak_ptr<Unit>& self, Inputs&... inputs) {
  const auto each = [&](const auto& visit) {
    const auto one = [&](auto& input) {
      if constexpr (detail::HoldsTensors<std::remove_cvref_t<decltype(input)>>::value) {
        detail::for_each_tensor(input, visit);
      }
    };
    (one(inputs), ...);
  };
  if (options_.precision.param_dtype && options_.precision.cast_forward_inputs) {
    each([&](at::Tensor& input) {
      if (input.defined() && input.is_floating_point()) input = input.to(*options_.precision.param_dtype);
    });
  }
  if (flats_.empty() || !at::GradMode::is_enabled()) return nullptr;
  auto call = std::make_shared<detail::Call>();
  call->unit = self;
  ++live_calls_;
  torch::autograd::variable_list joined;
  each([&](at::Tensor& input) {
    if (input.defined() && input.requires_grad()) joined.push_back(input);
  });
  if (joined.empty()) return call;
  const std::shared_ptr<detail::InputsNode> node(new detail::InputsNode, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(joined));
  node->call = call;
  each([&](at::Tensor& input) {
    if (!input.defined() || !input.requires_grad()) return;
    input = input.detach();
    torch::autograd::set_history(input, node);
  });
  call->hooked = true;
  return call;
}

template <class Outputs>
void Unit::after_forward(Outputs& outputs, const std::shared_ptr<detail::Call>& call, bool last) {
  if (is_root() && options_.precision.output_dtype) {
    detail::for_each_tensor(outputs, [&](at::Tensor& output) {
      if (output.defined() && output.is_floating_point()) output = output.to(*options_.precision.output_dtype);
    });
  }
  bool differentiable = false;
  if (call) {
    detail::for_each_tensor(outputs, [&](const at::Tensor& output) {
      if (!output.defined() || !output.requires_grad()) return;
      differentiable = true;
      output.register_hook([call](const at::Tensor&) {
        if (auto unit = call->unit.lock()) unit->before_backward(*call);
      });
    });
  }
  // A forward that backward asked for (recomputation) leaves the unit to that backward.
  if (in_backward_ || (differentiable && detail::in_graph_task())) return;
  if (differentiable) call->place = session_->order.after_forward(number_);
  if (is_root()) {  // gathered for calls that did not come
    for (auto& unit : session_->units) {
      for (auto& flat : unit->flats()) {
        if (flat->residence() == Residence::Gathering) flat->reshard();
      }
    }
  }
  // The root's backward comes first, so freeing it would only gather it again; without a backward nothing else would
  // free it.
  const bool keep = differentiable && (is_root() || !options_.reshard_after_forward);
  if (!last || keep || session_->keep_after_forward) return;
  for (auto& flat : flats_) {
    const bool to_group = differentiable && options_.reshard_group > 1;
    to_group ? flat->reshard_to_group() : flat->reshard();
  }
}

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
  // A job that can keep the whole model gathered in a step may keep its memory for the next one; others get it back.
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
