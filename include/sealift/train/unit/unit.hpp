// SPDX-License-Identifier: Apache-2.0
// A unit: the parameters that are gathered before a block's forward and backward, and reduced together after it.
// `Shardable` calls it around forward, autograd around backward; it gathers and frees its flats and knows no model.
// This header declares units and sessions; unit_graph.hpp is how autograd calls them, unit_passes.hpp what a pass does
// to all units of a model.
#pragma once

#include <sealift/train/flat/reducer.hpp>
#include <sealift/train/unit/call_order.hpp>

#include <torch/csrc/autograd/graph_task.h>

namespace sealift::train {

class Unit;

/// What a forward and its backward are to the optimizer's step.
struct Pass {
  bool reduce = true;              ///< these gradients and those collected before; otherwise collect only
  bool over_copies = true;         ///< ... over the copies of hsdp too
  bool keep = false;               ///< units stay gathered until the step's last backward
  bool first = true, last = true;  ///< of the step's passes: the optimizer has stepped before, and steps after
};

/// State that the units of one model share. Used by one thread, as a rank is.
struct Session {
  Session(const Policy& policy, Groups with)
      : policy(policy),
        groups(std::move(with)),
        memory(policy.stable_addresses ? std::make_shared<detail::SteadyBuffers>() : nullptr),
        reducer(groups, policy, memory),
        holders(groups.shard) {}

  Policy policy;
  Groups groups;
  std::shared_ptr<detail::SteadyBuffers> memory;  ///< of all flats; null unless the policy asks for stable addresses
  Reducer reducer;
  Collectives holders;          ///< ranks that together hold what is not replicated
  std::set<std::string> split;  ///< names of parameters that are split along an axis of their own
  std::shared_ptr<bool> silent =
      std::make_shared<bool>(false);  ///< this rank sends nothing along it, for it has no data
  CallOrder order;
  std::vector<std::unique_ptr<Unit>> units;  ///< the root first, then in the order of the model
  std::vector<at::Tensor> buffers;           ///< to broadcast before a forward in training mode
  std::vector<NamedTensor> frozen;           ///< parameters without a gradient, wherever they lie
  bool keep_gathered = false;                ///< what the policy's choice came to

  Pass pass;  ///< that runs or comes next
  bool in_backward = false;
  std::int64_t passes = 0;    ///< backward passes begun
  std::int64_t step = 0;      ///< backward passes that ended with everything reduced and freed
  std::int64_t epoch = 0;     ///< within one the optimizer does not step, so gathered values hold
  std::int64_t forwards = 0;  ///< that run now, each within the one before
  std::int64_t holds = 0;     ///< of users who need everything whole: nothing is freed

  bool keeps_after_backward() const { return pass.keep && !pass.last; }

  /// Called on every event of a backward pass; the first one asks autograd for a call at its end.
  void enter_backward();
  /// Called by every unit's forward. An outermost one outside of a backward pass resets after a pass that an exception
  /// cut short, and begins an epoch unless it continues a step; the root's also frees what earlier forwards left.
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
  std::size_t place = 0;                           ///< in the order of calls
  std::int64_t step = 0;                           ///< of the forward
  torch::autograd::Node* before_inputs = nullptr;  ///< its backward tells that the call's is done; may be null
  torch::autograd::Node* after_outputs = nullptr;  ///< of a differentiable output
  bool live = true;              ///< its backward is not done; without a node before its inputs: has not begun
  std::int64_t awaited_in = -1;  ///< the last backward pass whose graph contains it
  std::int64_t pass = -1;        ///< the last backward pass that reached it
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

  /// Counts a forward of any unit while it runs, also one that throws.
  struct Forward {
    explicit Forward(const Unit& unit)
        : session(*unit.session_), observed(*session.groups.observers, Activity::Forward, unit.label()) {
      ++session.forwards;
    }
    ~Forward() { --session.forwards; }
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;
    Session& session;
    ObservedScope observed;
  };

  Unit(std::string path, std::size_t number, Session* session, Options options)
      : path_(std::move(path)),
        label_(path_.empty() ? "root" : path_),
        number_(number),
        session_(session),
        options_(std::move(options)) {}

  const std::string& path() const { return path_; }
  const std::string& label() const { return label_; }  ///< the path; "root" for the root
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
    const bool again = detail::in_graph_task();  // by a recomputation
    for (auto& flat : flats_) {
      again ? flat->unshard() : flat->unshard(session_->epoch);
      TORCH_CHECK(
          again || !flat->is_outdated(), "the shards of unit '", label_,
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

  /// Autograd is about to leave a gradient on a parameter, or has left it.
  void before_gradient() { session_->enter_backward(); }
  void on_gradient(ParameterId id) {
    session_->enter_backward();
    session_->reducer.collect(id);
  }

  /// Everything between the inputs and outputs of `call` has run backward.
  void after_inputs(detail::Call& call) {
    call.live = false;
    if (call.pass != session_->passes) return;  // no output of it had a gradient
    ++closed_;
    close_when_done();
  }

  /// Begins a backward pass over `graph`: notes which calls it will come to.
  void await_calls(const std::unordered_set<torch::autograd::Node*>& graph) {
    std::erase_if(calls_, [](const auto& call) { return call.expired(); });
    for (const auto& each : calls_) {
      const auto call = each.lock();
      if (!call || !call->live) continue;
      auto* node = call->before_inputs ? call->before_inputs : call->after_outputs;
      if (graph.contains(node)) call->awaited_in = session_->passes;
    }
  }

  /// Whether a backward of a forward of this step may come to this unit.
  bool has_calls_of_step(std::int64_t step) const {
    return any_call([&](const auto& call) { return call.step == step; });
  }

  /// Starts the reduction of the collected gradients and frees the whole parameters.
  void close() {
    reset_backward();
    if (!session_->keeps_after_backward()) reshard();
    for (const auto flat : gradients_) session_->reducer.close(flat);
  }

  void reset_backward() {
    if (std::exchange(in_backward_, false) && !is_root()) session_->groups.observers->end(Activity::Backward, label_);
    opened_ = closed_ = 0;
  }

  void reshard() {
    if (session_->holds > 0) return;
    for (auto& flat : flats_) flat->reshard();
  }

  bool is_open() const { return in_backward_; }

  /// Units to gather while this one runs, instead of those next in the order of calls.
  void set_forward_prefetch(std::vector<std::size_t> units) { forward_prefetch_ = std::move(units); }
  void set_backward_prefetch(std::vector<std::size_t> units) { backward_prefetch_ = std::move(units); }

 private:
  /// Whether any call that lives, its backward not done, is such.
  template <class Such>
  bool any_call(const Such& such) const {
    return std::any_of(calls_.begin(), calls_.end(), [&](const auto& each) {
      const auto call = each.lock();
      return call && call->live && such(*call);
    });
  }

  /// A call without a node before its inputs never closes: its unit is freed at the end of the pass, since nothing else
  /// tells that no recomputation needs it again.
  void close_when_done() {
    const auto awaited = [&](const auto& call) { return call.awaited_in == session_->passes; };
    if (in_backward_ && closed_ == opened_ && !any_call(awaited)) close();
  }

  std::string path_, label_;
  std::size_t number_;
  Session* session_;
  Options options_;
  std::vector<std::unique_ptr<FlatParam>> flats_;
  std::vector<std::size_t> gradients_;  ///< flats of the reducer
  std::optional<std::vector<std::size_t>> forward_prefetch_, backward_prefetch_;

  std::vector<std::weak_ptr<detail::Call>> calls_;  ///< recorded; the graph owns them

  // Of the backward pass that runs:
  bool in_backward_ = false;
  std::int64_t opened_ = 0, closed_ = 0;  ///< calls
};

}  // namespace sealift::train
