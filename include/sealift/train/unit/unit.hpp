// SPDX-License-Identifier: Apache-2.0
// A unit: the parameters that are gathered before a block's forward and backward, and reduced together after it.
// `Shardable` calls it around forward, autograd around backward; it gathers and frees its flats and knows no model.
// This header declares units and sessions; unit_graph.hpp is how autograd calls them, unit_passes.hpp what a pass does
// to all units of a model.
#pragma once

#include <sealift/train/flat/reducer.hpp>
#include <sealift/train/unit/call_order.hpp>

#include <torch/csrc/autograd/graph_task.h>

#include <atomic>

namespace sealift::train {

class Unit;

/// State that the units of one model share. Used by one thread, as a rank is.
struct Session {
  Session(const Policy& policy, const Groups& groups) : policy(policy), groups(groups), reducer(groups, policy) {}

  Policy policy;
  Groups groups;
  Reducer reducer;
  CallOrder order;
  std::vector<std::unique_ptr<Unit>> units;  ///< the root first, then in the order of the model
  std::vector<at::Tensor> buffers;           ///< to broadcast before a forward in training mode

  bool sync = true;         ///< reduce with this backward; otherwise collect only, for a later one to reduce
  bool sync_copies = true;  ///< ... over the copies of hsdp too
  bool keep_after_forward = false, keep_after_backward = false;  ///< stay gathered, whatever the units' settings
  bool continues = false;  ///< the next forward belongs to the same step: the optimizer has not stepped
  bool in_backward = false;
  std::int64_t pass = 0;  ///< backward passes begun
  std::int64_t step = 0;  ///< backward passes that ended with everything reduced and freed

  /// Called on every event of a backward pass; the first one asks autograd for a call at its end.
  void enter_backward();
  /// Called by every unit's forward. Outside of a backward pass, resets after one that an exception cut short; the
  /// root's forward starts with nothing gathered, since an optimizer may have stepped after a forward without backward.
  void enter_forward(const Unit& unit, bool training);
  void finish_backward();
  /// Starts to gather these units, but has no more than that many gathered ahead.
  void prefetch(const std::vector<std::size_t>& numbers);
  /// Makes a new forward possible: nothing gathered, collected or in flight.
  void reset();
};

namespace detail {

/// One call of a unit's forward that will run backward, shared by the autograd nodes that belong to it.
struct Call {
  std::weak_ptr<Unit> unit;
  std::size_t place = 0;   ///< in the order of calls
  bool hooked = false;     ///< has a node before its inputs, which tells when its backward is done
  bool live = true;        ///< its backward is not done; without such a node: has not begun
  std::int64_t pass = -1;  ///< the last backward pass that reached it

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

  /// Collects the gradients of `slots` as flat `flat` of the reducer, which reduces them when this unit closes.
  void listen(const std::vector<GradientSlot>& slots, std::size_t flat, const std::weak_ptr<Unit>& self);

  /// `training` is the module's mode. Parameters are whole when this returns.
  void before_forward(bool training) {
    session_->enter_forward(*this, training);
    for (auto& flat : flats_) flat->unshard();
    if (detail::in_graph_task()) return;
    // Units that stay gathered until the last micro-batch may all be gathered at once.
    const auto depth = session_->keep_after_forward && session_->policy.forward_prefetch > 0
                           ? session_->units.size()
                           : static_cast<std::size_t>(session_->policy.forward_prefetch);
    const auto next = session_->order.before_forward(number_, depth, at::GradMode::is_enabled());
    session_->prefetch(forward_prefetch_ ? *forward_prefetch_ : next);
  }

  /// Prepares a forward's arguments: casts floating tensors to the unit's dtype, and puts all tensors behind one node
  /// whose backward tells that the call's is done. Null when no backward will need the unit.
  template <class... Inputs>
  std::shared_ptr<detail::Call> take_inputs(const std::weak_ptr<Unit>& self, Inputs&... inputs);

  /// `outputs`: a tensor, or tuples, vectors and optionals of them; their gradients begin the unit's backward. `last`:
  /// no other module that shares this unit runs after this one.
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

  void on_gradient(ParameterId id) {
    session_->enter_backward();
    session_->reducer.collect(id);
  }

  /// Everything between the inputs and outputs of `call` has run backward.
  void after_inputs(detail::Call& call) {
    end_life(call);
    if (call.pass != session_->pass) return;  // no output of it had a gradient
    ++closed_;
    close_when_done();
  }

  /// Starts the reduction of the collected gradients and frees the whole parameters.
  void close() {
    reset_backward();
    if (!session_->keep_after_backward) reshard();
    for (const auto flat : gradients_) session_->reducer.close(flat);
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

  /// Units to gather while this one runs, instead of those next in the order of calls.
  void set_forward_prefetch(std::vector<std::size_t> units) { forward_prefetch_ = std::move(units); }
  void set_backward_prefetch(std::vector<std::size_t> units) { backward_prefetch_ = std::move(units); }

 private:
  friend struct detail::Call;

  void end_life(detail::Call& call) {
    if (std::exchange(call.live, false)) --live_calls_;
  }

  /// A call without a node before its inputs never closes: its unit is freed at the end of the pass, since nothing else
  /// tells that no recomputation needs it again.
  void close_when_done() {
    if (in_backward_ && closed_ == opened_ && live_calls_ == 0) close();
  }

  std::string path_;
  std::size_t number_;
  Session* session_;
  Options options_;
  std::vector<std::unique_ptr<FlatParam>> flats_;
  std::vector<std::size_t> gradients_;  ///< flats of the reducer
  std::optional<std::vector<std::size_t>> forward_prefetch_, backward_prefetch_;

  // Of the backward pass that runs:
  bool in_backward_ = false;
  std::int64_t opened_ = 0, closed_ = 0;      ///< calls
  std::atomic<std::int64_t> live_calls_ = 0;  ///< recorded and alive; a graph that is never used ends its calls
};

inline detail::Call::~Call() {
  if (auto alive = unit.lock()) alive->end_life(*this);
}

}  // namespace sealift::train
