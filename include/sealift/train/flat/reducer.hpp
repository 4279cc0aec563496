// SPDX-License-Identifier: Apache-2.0
// When gradients are reduced: flats as their units close, buckets of replicated parameters in one order on all ranks.
// Autograd's hooks bring each gradient here; `unit` says when a unit is done and when the backward pass ends.
// A reduction runs while backward goes on. Sums are linear, so a gradient that comes after its buffer was reduced is
// reduced again at the end of the pass: slower, never wrong.
// Mirrored by trainer/plan/engine_memory.cpp and trainer/simulate/step_time.cpp: change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/buckets.hpp>
#include <sealift/train/flat/flat_gradient.hpp>

#include <deque>

namespace sealift::train {

class Reducer {
 public:
  /// Buffers lie in `memory`, unless null.
  Reducer(Groups groups, const Policy& policy, std::shared_ptr<detail::SteadyBuffers> memory = {});

  /// What PowerSGD remembers; null unless the policy asks for it.
  const std::shared_ptr<PowerSgd>& power_sgd() const { return power_sgd_; }

  /// Takes the gradients of a sharded unit's flat; returns the flat's number.
  std::size_t add(std::unique_ptr<FlatGradient> flat);

  /// Takes replicated parameters, in the order of the model, each with the dtype to reduce it in and the ranks that
  /// hold copies; returns their flat's number. Once, after the last `add`.
  std::size_t add_replicated(std::vector<GradientSlot> slots, std::vector<std::optional<at::ScalarType>> dtypes,
                             std::vector<Groups> copies);

  /// Begins a backward pass, whose gradients are to be reduced if `sync`, and over copies too if `over_copies`.
  void begin_pass(bool sync, bool over_copies);

  /// Takes the gradient that autograd has left on parameter `id`.
  void collect(ParameterId id);

  /// The same of a gradient that is left · right, which nobody has computed. False, and nothing is done, where it must
  /// be a tensor first. More gradients of `id` may follow, of either kind; a bucket waits for `collect` or `has_all`.
  bool collect_product(ParameterId id, const at::Tensor& left, const at::Tensor& right);

  /// Autograd is done with parameter `id` in this pass, whose gradients came as products alone, if any did.
  void has_all(ParameterId id);

  /// The unit that flat `flat` belongs to is done with its backward. Buckets do not wait for a unit.
  void close(std::size_t flat);

  /// Ends the backward pass: reduces what is left and waits for everything.
  void end_pass();

  /// After a backward pass: guards in place of the gradients that the loop cannot read.
  void set_marks();

  /// Gradients become sum / `divisor`; 0: the world size.
  void set_divisor(double divisor);

  /// Drops what was collected and not reduced: a step was cut short.
  void drop();

  /// Adds the means that wait in host memory to the gradients of the leaves.
  void flush();

  /// Waits for the reductions in flight and drops what was not reduced, after a pass that failed.
  void reset();

  /// The buckets of replicated parameters, in the order in which they are reduced.
  std::vector<const FlatGradient*> buckets() const;

 private:
  struct Bucket {
    std::unique_ptr<FlatGradient> gradients;
    std::vector<bool> seen;   ///< per slot: collected in this pass
    std::size_t missing = 0;  ///< slots that were not
  };
  /// Where a replicated parameter's gradient is collected.
  struct Place {
    std::size_t bucket = 0, slot = 0;
  };

  bool is_replicated(std::size_t flat) const { return flat == flats_.size(); }

  /// The buffer that collects the gradient of parameter `id`, and its slot there.
  FlatGradient& gradients_of(ParameterId id) const;
  std::size_t slot_of(ParameterId id) const { return is_replicated(id.flat) ? places_[id.index].slot : id.index; }

  /// Every parameter with a gradient: those of the flats, then the replicated ones.
  std::vector<ParameterId> ids() const;

  std::vector<FlatGradient*> all() const;

  /// What follows a gradient of `id`: a bucket that is complete is reduced.
  void collected(ParameterId id);

  bool is_due(const FlatGradient& gradients) const;

  bool started(const FlatGradient& gradients) const;

  void start(FlatGradient& gradients);

  /// Reduces what the pass has left, and waits for everything.
  void reduce_rest();

  double divisor() const { return divisor_ > 0 ? divisor_ : static_cast<double>(groups_.mesh.world_size()); }

  void finish_oldest();

  void finish_through(const FlatGradient& gradients);

  /// Waits for everything; where ranks may have used different parameters, one that any rank used gets its mean on all,
  /// and a buffer that any rank has to reduce again is reduced again by all.
  void finish_all();

  /// Makes the buckets again, in the order in which gradients came in the first pass on rank 0.
  void rebuild();

  /// Makes buckets of one kind each over the replicated parameters in `order`; nothing may be collected.
  void make_buckets(const std::vector<std::int64_t>& order);

  Groups groups_;
  Policy policy_;
  std::shared_ptr<detail::SteadyBuffers> memory_;
  std::shared_ptr<PowerSgd> power_sgd_;
  std::vector<std::unique_ptr<FlatGradient>> flats_;   ///< by number; the next number is the replicated parameters'
  std::vector<GradientSlot> slots_;                    ///< of the replicated parameters
  std::vector<std::optional<at::ScalarType>> dtypes_;  ///< ... to reduce them in
  std::vector<Groups> copies_;                         ///< ... over these
  std::vector<Place> places_;                          ///< ... in the buckets
  std::vector<Bucket> buckets_;                        ///< in the order in which they are reduced
  std::size_t next_bucket_ = 0;
  std::deque<FlatGradient*> running_;      ///< reductions in flight, oldest first
  std::vector<FlatGradient*> started_;     ///< in this pass
  std::vector<std::int64_t> ready_order_;  ///< indices of replicated gradients as they came in the first reduced pass
  bool rebuilt_ = false, rebuild_due_ = false;
  bool sync_ = true, over_copies_ = true;
  bool holds_sums_ = false;  ///< buffers hold gradients of passes that were not fully reduced
  double divisor_ = 0;       ///< 0: the world size
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/reducer_inl.hpp>
#endif
