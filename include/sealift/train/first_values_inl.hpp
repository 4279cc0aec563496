// SPDX-License-Identifier: Apache-2.0
// The bodies of first_values.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/first_values.hpp>

namespace sealift::train {

namespace detail {

SEALIFT_BODY std::vector<WantedTensor> wanted_tensors(const torch::nn::Module& model) {
  std::vector<WantedTensor> wanted;
  std::map<at::TensorImpl*, std::size_t> seen;
  const auto add = [&](const std::string& name, const at::Tensor& tensor, bool required) {
    const auto [known, is_new] = seen.try_emplace(tensor.unsafeGetTensorImpl(), wanted.size());
    if (!is_new) return wanted[known->second].aliases.push_back(name);
    wanted.push_back(
        {.name = name, .sizes = tensor.sizes().vec(), .dtype = tensor.scalar_type(), .required = required});
  };
  for (const auto& item : model.named_parameters()) add(item.key(), item.value(), true);
  for (const auto& item : model.named_buffers()) add(item.key(), item.value(), item.value().is_meta());
  return wanted;
}

SEALIFT_BODY std::vector<NamedTensor> ignored_parameters(const torch::nn::Module& model,
                                                         const std::vector<UnitPlan>& plans) {
  std::set<at::TensorImpl*> known;
  for (const auto& plan : plans) {
    for (const auto& parameter : plan.parameters) known.insert(parameter.tensor.unsafeGetTensorImpl());
  }
  std::vector<NamedTensor> result;
  for (const auto& item : model.named_parameters()) {
    if (known.insert(item.value().unsafeGetTensorImpl()).second) result.push_back({item.key(), item.value()});
  }
  return result;
}

SEALIFT_BODY std::vector<NamedTensor> named_buffers(const torch::nn::Module& model) {
  std::vector<NamedTensor> result;
  for (const auto& item : model.named_buffers()) result.push_back({item.key(), item.value()});
  return result;
}

SEALIFT_BODY bool check_first_values(const torch::nn::Module& model, Groups& groups, const Policy& policy,
                                     Source* source) {
  TORCH_CHECK(!MetaDevice::lives(), "a MetaDevice is alive; end its scope after the model is built");
  if (source) {
    source->check(wanted_tensors(model));
    return false;
  }

  std::vector<std::string> on_meta;
  const auto note = [&](const auto& items) {
    for (const auto& item : items) {
      if (item.value().is_meta()) on_meta.push_back(item.key());
    }
  };
  note(model.named_parameters());
  note(model.named_buffers());
  const auto mine = torch::tensor({static_cast<std::int64_t>(on_meta.size())}).to(groups.device);
  auto all = mine.repeat({groups.world.size()});
  groups.world.all_gather(all, mine, "first values").wait();
  const auto givers = policy.sync_module_states ? 1 : groups.world.size();
  for (std::int64_t rank = 0; rank < givers; ++rank) {
    const auto count = all[rank].item<std::int64_t>();
    TORCH_CHECK(count == 0, "rank ", rank, " has ", count, " tensors on the meta device",
                on_meta.empty() ? std::string() : ", as '" + on_meta.front() + "'",
                ", which have no values; build the model without MetaDevice there, or give parallelize a Source");
  }
  return all.any().item<bool>();
}

SEALIFT_BODY void fill_whole(const std::vector<NamedTensor>& tensors, bool are_buffers, Groups& groups, Source* source,
                             bool from_rank_0, const std::string& label) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> filled;
  for (const auto& [name, tensor] : tensors) {
    const bool empty = tensor.is_meta();
    const auto options = tensor.options().device(device_for(tensor, groups)).requires_grad(false);
    if (empty) {
      replace_data(tensor, torch::empty_like(tensor, options));
    } else if (tensor.device() != options.device()) {
      replace_data(tensor, tensor.detach().to(options));
    }
    filled.push_back(tensor);
    if (!source || (are_buffers && !empty && !source->has(name))) continue;
    auto values = tensor.is_contiguous() ? tensor.detach().view({-1}) : torch::empty({tensor.numel()}, options);
    source->read(name, tensor.sizes(), 0, values);
    if (!tensor.is_contiguous()) tensor.detach().copy_(values.view(tensor.sizes()));
  }
  if (!source && from_rank_0) broadcast_together(groups.world, filled, label);
}

}  // namespace detail

}  // namespace sealift::train
