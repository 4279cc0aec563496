// SPDX-License-Identifier: Apache-2.0
// A unit: the parameters that are gathered before a block's forward and backward, and reduced together after it.
// `Shardable` calls it around forward; autograd calls it around backward; it moves its flats and knows no model.
// Autograd's order is the schedule: a hook on a block's outputs opens its backward, the last of its gradients closes
// it, and a callback at the end of the pass closes what had unused parameters, so nothing waits for a gradient that
// never comes.
#pragma once

#include <sealift/train/flat_param.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <array>
#include <optional>
#include <tuple>

namespace sealift::train {

class Unit;

/// What the units of one model share. Belongs to one thread, as a rank does.
struct Session {
  Policy policy;
  Groups groups;
  std::vector<std::unique_ptr<Unit>> units;  ///< the root first, then in the order of the model
  std::vector<Unit*> reducing;               ///< reductions in flight, oldest first
  bool requires_gradient_sync = true;        ///< false: collect gradients of this micro-batch, reduce with a later one
  bool in_backward = false;

  /// Called by everything that happens in a backward pass: the first one asks to be told of its end.
  void enter_backward();
  /// Called by every unit's forward: outside a backward pass, forgets one that an exception cut short, and starts the
  /// root's forward with nothing gathered, since an optimizer may have stepped after a forward that had no backward.
  void enter_forward(bool is_root);
  void finish_backward();
  void finish_oldest_reduction();
};

class Unit {
 public:
  Unit(std::string path, bool is_root, Session* session)
      : path_(std::move(path)), is_root_(is_root), session_(session) {}

  const std::string& path() const { return path_; }
  const std::vector<std::unique_ptr<FlatParam>>& flats() const { return flats_; }

  /// Adds a flat and listens to its gradients; `self` must own this unit.
  void add_flat(std::vector<NamedTensor> parameters, const std::weak_ptr<Unit>& self);

  void before_forward() {
    session_->enter_forward(is_root_);
    for (auto& flat : flats_) flat->unshard();
  }

  /// `outputs`: a tensor, or tuples, vectors and optionals of them; their gradients announce the unit's backward.
  template <class Outputs>
  void after_forward(Outputs& outputs, const std::weak_ptr<Unit>& self);

  void before_backward() {
    session_->enter_backward();
    in_backward_ = true;
    for (auto& flat : flats_) flat->unshard();
  }

  void on_gradient(FlatParam& flat, std::size_t index) {
    session_->enter_backward();
    flat.collect_gradient(index);
    if (++gradients_seen_ == trainable_) after_backward();
  }

  /// Starts the reduction of what was collected and frees the whole parameters.
  void after_backward() {
    reset_backward();
    for (auto& flat : flats_) flat->reshard();
    if (!session_->requires_gradient_sync || !has_any_gradient()) return;
    // When sharded, one reduction in flight bounds the memory to one unit's whole gradients besides those being made.
    if (session_->groups.mesh.shard > 1 && !session_->reducing.empty()) session_->finish_oldest_reduction();
    for (auto& flat : flats_) {
      if (flat->has_any_gradient()) flat->start_reduce();
    }
    session_->reducing.push_back(this);
  }

  void finish_reduce() {
    for (auto& flat : flats_) {
      if (flat->has_any_gradient()) flat->finish_reduce();
    }
  }

  void reset_backward() {
    in_backward_ = false;
    gradients_seen_ = 0;
  }

 private:
  bool has_any_gradient() const {
    return std::any_of(flats_.begin(), flats_.end(), [](const auto& flat) { return flat->has_any_gradient(); });
  }

  std::string path_;
  bool is_root_;
  Session* session_;
  std::vector<std::unique_ptr<FlatParam>> flats_;
  std::size_t trainable_ = 0;       ///< parameters that can get a gradient
  std::size_t gradients_seen_ = 0;  ///< of those, in this backward pass
  bool in_backward_ = false;
};

namespace detail {

/// Calls `visit` on every tensor in what a forward may return.
template <class Value, class Visit>
void for_each_tensor(Value& value, const Visit& visit) {
  if constexpr (std::is_convertible_v<Value&, const at::Tensor&>) {
    visit(static_cast<const at::Tensor&>(value));
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    std::apply([&](auto&... parts) { (for_each_tensor(parts, visit), ...); }, value);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) for_each_tensor(*value, visit);
  } else {
    static_assert(
        requires {
          value.begin();
          value.end();
        },
        "a Shardable block returns tensors, or tuples, optionals and vectors of them");
    for (auto& part : value) for_each_tensor(part, visit);
  }
}

/// Runs after autograd has accumulated a parameter's gradient of this pass.
struct GradientHook final : torch::autograd::PostAccumulateGradHook {
  std::weak_ptr<Unit> unit;
  FlatParam* flat;
  std::size_t index;

  GradientHook(std::weak_ptr<Unit> unit, FlatParam* flat, std::size_t index)
      : unit(std::move(unit)), flat(flat), index(index) {}

  void operator()(const at::Tensor&) override {
    if (auto alive = unit.lock()) alive->on_gradient(*flat, index);
  }
};

}  // namespace detail

inline void Unit::add_flat(std::vector<NamedTensor> parameters, const std::weak_ptr<Unit>& self) {
  auto flat = std::make_unique<FlatParam>(std::move(parameters), session_->groups, session_->policy.sync_module_states);
  for (std::size_t i = 0; flat->trainable() && i < flat->size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(flat->parameters()[i].tensor,
                                                   std::make_unique<detail::GradientHook>(self, flat.get(), i));
    ++trainable_;
  }
  flats_.push_back(std::move(flat));
}

template <class Outputs>
void Unit::after_forward(Outputs& outputs, const std::weak_ptr<Unit>& self) {
  const bool recording = at::GradMode::is_enabled();
  if (recording) {
    detail::for_each_tensor(outputs, [&](const at::Tensor& output) {
      if (!output.defined() || !output.requires_grad()) return;
      output.register_hook([self](const at::Tensor&) {
        if (auto unit = self.lock()) unit->before_backward();
      });
    });
  }
  // The root's backward comes first, so freeing it would only gather it again; without a backward nothing else would
  // free it. A forward that backward asked for (recomputation) leaves the unit to that backward.
  const bool keep = in_backward_ || (recording && (is_root_ || !session_->policy.reshard_after_forward));
  if (keep) return;
  for (auto& flat : flats_) flat->reshard();
}

inline void Session::enter_forward(bool is_root) {
  if (torch::autograd::get_current_graph_task_id() != -1) return;
  if (std::exchange(in_backward, false)) {
    while (!reducing.empty()) finish_oldest_reduction();
    for (auto& unit : units) unit->reset_backward();
  }
  if (!is_root) return;
  for (auto& unit : units) {
    for (auto& flat : unit->flats()) flat->reshard();
  }
}

inline void Session::enter_backward() {
  // A backward inside this backward (recomputation) must not end it.
  if (std::exchange(in_backward, true)) return;
  torch::autograd::Engine::get_default_engine().queue_callback([this] { finish_backward(); });
}

inline void Session::finish_backward() {
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    // Those that the countdown closed already have nothing left to reduce or free.
    if (std::find(reducing.begin(), reducing.end(), unit->get()) == reducing.end()) (*unit)->after_backward();
    for (auto& flat : (*unit)->flats()) flat->reshard();
  }
  while (!reducing.empty()) finish_oldest_reduction();
  in_backward = false;
}

inline void Session::finish_oldest_reduction() {
  Unit* unit = reducing.front();
  reducing.erase(reducing.begin());
  unit->finish_reduce();
}

}  // namespace sealift::train
