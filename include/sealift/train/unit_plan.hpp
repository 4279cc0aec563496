// SPDX-License-Identifier: Apache-2.0
// Which modules become units, and which parameters each unit holds: a plan, made before anything is changed.
// `parallelize` carries it out. Reads the model and the answers of `Policy::wrap` (unit_choice.hpp), and writes
// nothing. A parameter belongs to the innermost unit that contains it. Units that would hold none are not made.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/unit_choice.hpp>

namespace sealift::train {

/// A unit before its parameters become flats.
struct UnitPlan {
  std::string path = {};              ///< empty for the root; the first module's when several share the unit
  std::vector<UnitSlot*> slots = {};  ///< of those modules, in the order of the model
  std::vector<NamedTensor> parameters = {};
  std::vector<at::Tensor> buffers = {};
  std::vector<StoredAs> stored = {};  ///< of each parameter; empty: all as they are
  bool replicate = false, replicate_trained = false;
  Unit::Options options = {};

  StoredAs stored_as(std::size_t index) const { return stored.empty() ? StoredAs::Plain : stored[index]; }

  std::int64_t numel() const;
};

namespace detail {

/// Gives parameters and buffers to the innermost unit that contains them.
struct Distribution {
  std::map<const torch::nn::Module*, std::size_t> unit_of = {};
  std::set<at::TensorImpl*> ignored = {};
  std::vector<UnitPlan> plans = {};
  std::map<at::TensorImpl*, std::pair<std::string, std::size_t>> seen = {};  ///< first name and unit of a parameter

  /// Adds those of `module` and below, which is in unit `unit`; a tied one counts once.
  void add(const torch::nn::Module& module, const std::string& path, std::size_t unit);
};

}  // namespace detail

/// The units of `model`, the root's first, then in the order of the model; throws when parameters are tied across units
/// or a pattern matches nothing.
std::vector<UnitPlan> plan_units(torch::nn::Module& model, const Policy& policy);

/// Advice about `plans`: units that are too small to be worth a collective, or that hold most of the model, so that
/// nothing overlaps.
std::vector<std::string> unit_warnings(const std::vector<UnitPlan>& plans);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/unit_plan_inl.hpp>
#endif
