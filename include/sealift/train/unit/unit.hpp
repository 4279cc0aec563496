// SPDX-License-Identifier: Apache-2.0
// A unit: the parameters that are gathered before a block's forward and backward, and reduced together after it.
// `Shardable` calls it around forward, autograd around backward; it gathers and frees its flats and knows no model.
// This header declares units and sessions; unit_graph.hpp is how autograd calls them.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/reducer.hpp>
#include <sealift/train/unit/call_order.hpp>

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
  Session(const Policy& policy, Groups with);

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

  /// Told of each tensor that a unit's forward returns, to find out where values go wrong; null in a usual step.
  std::function<void(const std::string& unit, const at::Tensor& output)> on_output;

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

bool in_graph_task();

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
    explicit Forward(const Unit& unit);
    ~Forward() { --session.forwards; }
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;
    Session& session;
    ObservedScope observed;
  };

  Unit(std::string path, std::size_t number, Session* session, Options options);

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
  void before_forward(bool training);

  /// Prepares a forward's arguments: casts floating tensors to the unit's dtype, and puts all tensors behind one node
  /// whose backward tells that the call's is done. Null when no backward will need the unit.
  template <class... Inputs>
  std::shared_ptr<detail::Call> take_inputs(const std::weak_ptr<Unit>& self, Inputs&... inputs);

  /// `outputs`: a tensor, or tuples, vectors and optionals of them; their gradients begin the unit's backward. `last`:
  /// no other module that shares this unit runs after this one.
  template <class Outputs>
  void after_forward(Outputs& outputs, const std::shared_ptr<detail::Call>& call, bool last);

  void before_backward(detail::Call& call);

  /// Autograd is about to leave a gradient on a parameter, or has left it.
  void before_gradient() { session_->enter_backward(); }
  void on_gradient(ParameterId id);
  /// See Reducer::has_all.
  void after_products(ParameterId id);
  /// See Reducer::collect_product.
  bool on_product(ParameterId id, const at::Tensor& left, const at::Tensor& right);

  /// Everything between the inputs and outputs of `call` has run backward.
  void after_inputs(detail::Call& call);

  /// Begins a backward pass over `graph`: notes which calls it will come to.
  void await_calls(const std::unordered_set<torch::autograd::Node*>& graph);

  /// Whether a backward of a forward of this step may come to this unit.
  bool has_calls_of_step(std::int64_t step) const;

  /// Starts the reduction of the collected gradients and frees the whole parameters.
  void close();

  void reset_backward();

  void reshard();

  bool is_open() const { return in_backward_; }

  /// Units to gather while this one runs, instead of those next in the order of calls.
  void set_forward_prefetch(std::vector<std::size_t> units) { forward_prefetch_ = std::move(units); }
  void set_backward_prefetch(std::vector<std::size_t> units) { backward_prefetch_ = std::move(units); }

 private:
  /// Whether any call that lives, its backward not done, is such.
  template <class Such>
  bool any_call(const Such& such) const;

  /// A call without a node before its inputs never closes: its unit is freed at the end of the pass, since nothing else
  /// tells that no recomputation needs it again.
  void close_when_done();

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

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/unit/unit_inl.hpp>
#endif
