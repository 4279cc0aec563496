// SPDX-License-Identifier: Apache-2.0
// Modules whose parameters differ from rank to rank along an axis of the mesh, as the experts of a mixture do: which
// those are, and the part of each that this rank keeps.
// Beside `unit_plan`; `parallelize` cuts after its checks and gives the parts flats and groups of their own.
// A model is built whole on every mesh, on the meta device if it is large, so that sources, checkpoints and exports
// know whole parameters only.
#pragma once

#include <sealift/train/first_values.hpp>

namespace sealift::train {

/// A module whose own parameters (not its children's) are cut along their first dimension over an axis of the mesh:
/// rank i along it keeps the i-th of equal parts, and the module brings its inputs to the ranks that have what they
/// need. In a mesh without the axis it stays whole.
class SplitAlong {
 public:
  virtual ~SplitAlong() = default;

  virtual const char* axis() const = 0;

  /// The parameters were cut over the ranks of `group`. While `*silent` (a rank that `Join` goes on with after its data
  /// ended), the module sends nothing of its own inputs and answers what does not depend on the others, but takes part
  /// in every exchange, forward and backward, with what the others send. From `parallelize`, once.
  virtual void set_group(Collectives group, std::shared_ptr<const bool> silent) = 0;
};

namespace detail {

/// What a cut parameter is a part of.
struct WholeOf {
  at::Tensor part;
  std::vector<std::int64_t> sizes;  ///< of the whole
  std::int64_t first = 0;           ///< element of it with which the part begins
};

/// The modules of a model that are split, and their parameters.
struct Split {
  Collectives axis;     ///< the ranks that together hold a whole
  Groups groups;        ///< of the parts: ranks that hold the same ones, or shards of them
  Collectives holders;  ///< ranks that together hold all parts and all shards once
  std::vector<SplitAlong*> modules;
  std::map<std::string, WholeOf> wholes;  ///< by the parameter's name

  bool contains(const std::string& name) const { return wholes.contains(name); }
};

inline void find_split(torch::nn::Module& module, const std::string& path, const std::string& axis, Split& split) {
  const auto ranks = split.axis.size();
  auto* self = dynamic_cast<SplitAlong*>(&module);
  if (self && self->axis() == axis &&
      std::find(split.modules.begin(), split.modules.end(), self) == split.modules.end()) {
    split.modules.push_back(self);
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      const auto& tensor = item.value();
      TORCH_CHECK(tensor.dim() > 0 && tensor.size(0) % ranks == 0, "parameter '", join(path, item.key()), "' of shape ",
                  tensor.sizes(), " is to be split over the ", ranks, " ranks of axis '", axis,
                  "'; their number must divide its first size");
      split.wholes[join(path, item.key())] = {tensor, tensor.sizes().vec(), tensor.numel() / ranks * split.axis.rank()};
    }
  }
  for (const auto& item : module.named_children()) find_split(*item.value(), join(path, item.key()), axis, split);
}

/// The axes of the mesh, other than the core's, that modules of `model` are split along.
inline void find_split_axes(const torch::nn::Module& module, const Groups& groups, std::set<std::string>& axes) {
  const auto* self = dynamic_cast<const SplitAlong*>(&module);
  if (self && groups.world_mesh && groups.world_mesh->size(self->axis()) > 1) axes.insert(self->axis());
  for (const auto& item : module.named_children()) find_split_axes(*item.value(), groups, axes);
}

/// What of `model` is split over an axis of the world's mesh; nothing where the mesh has no such axis. Throws unless
/// parameters can be cut. Collective over the world.
inline Split find_split(torch::nn::Module& model, const Groups& groups) {
  std::set<std::string> axes;
  find_split_axes(model, groups, axes);
  Split split;
  if (axes.empty()) return split;
  TORCH_CHECK(axes.size() == 1, "modules are split along axes '", *axes.begin(), "' and '", *axes.rbegin(),
              "'; one axis in a model");
  const auto& axis = *axes.begin();
  for (const auto* names : {&groups.sharded, &groups.copied}) {
    if (std::find(names->begin(), names->end(), axis) == names->end()) continue;
    split.axis = groups.along(AxisNames{axis});
    split.groups = groups.without(axis);
    auto axes_of_parts = split.groups.sharded;
    axes_of_parts.push_back(axis);
    split.holders = groups.along(axes_of_parts);
    find_split(model, "", axis, split);
    return split;
  }
  TORCH_CHECK(false, "the mesh ", groups.world_mesh->text(), " has an axis '", axis,
              "' but the groups are not over it; ", "make them by make_groups(world, policy, \"", axis, "\", ranks)");
}

/// Leaves this rank's part of each split parameter: without memory of its values where a `source` gives them, else of
/// rank 0's if `from_rank_0`, else of its own. Collective over the world in the second case.
inline void cut(const Split& split, Groups& groups, const Source* source, bool from_rank_0) {
  at::NoGradGuard no_grad;
  for (const auto& [name, whole] : split.wholes) {
    const auto rows = whole.sizes[0] / split.axis.size();
    const auto options = whole.part.options().requires_grad(false);
    auto sizes = whole.sizes;
    sizes[0] = rows;
    if (source) {
      replace_data(whole.part, torch::empty(sizes, options));
      continue;
    }
    const auto device = device_for(whole.part, groups);
    const auto all = whole.part.is_meta() ? torch::empty(whole.sizes, options.device(device))
                                          : whole.part.detach().to(device).contiguous();
    if (from_rank_0) broadcast_together(groups.world, {all}, name);
    replace_data(whole.part, all.narrow(0, split.axis.rank() * rows, rows).clone());
  }
}

/// Reads parts of split parameters as what they are: ranges of whole ones.
class SourceOfParts final : public Source {
 public:
  SourceOfParts(Source& wholes, const Split& split) : wholes_(wholes), split_(split) {}

  bool has(const std::string& name) const override { return wholes_.has(name); }

  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override {
    const auto whole = split_.wholes.find(name);
    if (whole == split_.wholes.end()) return wholes_.read(name, sizes, begin, std::move(out));
    wholes_.read(name, whole->second.sizes, whole->second.first + begin, std::move(out));
  }

 private:
  Source& wholes_;
  const Split& split_;
};

}  // namespace detail

}  // namespace sealift::train
