// SPDX-License-Identifier: Apache-2.0
// The bodies of split_along.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/split_along.hpp>

namespace sealift::train {

namespace detail {

SEALIFT_BODY void find_split(torch::nn::Module& module, const std::string& path, const std::string& axis,
                             Split& split) {
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
SEALIFT_BODY void find_split_axes(const torch::nn::Module& module, const Groups& groups, std::set<std::string>& axes) {
  const auto* self = dynamic_cast<const SplitAlong*>(&module);
  if (self && groups.world_mesh && groups.world_mesh->size(self->axis()) > 1) axes.insert(self->axis());
  for (const auto& item : module.named_children()) find_split_axes(*item.value(), groups, axes);
}

SEALIFT_BODY Split find_split(torch::nn::Module& model, const Groups& groups) {
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

SEALIFT_BODY void cut(const Split& split, Groups& groups, const Source* source, bool from_rank_0) {
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

SEALIFT_BODY void SourceOfParts::read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin,
                                      at::Tensor out) {
  const auto whole = split_.wholes.find(name);
  if (whole == split_.wholes.end()) return wholes_.read(name, sizes, begin, std::move(out));
  wholes_.read(name, whole->second.sizes, whole->second.first + begin, std::move(out));
}

}  // namespace detail

}  // namespace sealift::train
