// SPDX-License-Identifier: Apache-2.0
// The bodies of keep_choice.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/keep_choice.hpp>
#include <sealift/train/launch/host_share.hpp>

#include <c10/core/CachingDeviceAllocator.h>

#include <unistd.h>

namespace sealift::train {

SEALIFT_BODY KeepCost keep_cost(const std::vector<UnitPlan>& plans, std::int64_t shards) {
  KeepCost cost;
  for (const auto& plan : plans) {
    const auto& precision = plan.options.precision;
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      const auto& tensor = plan.parameters[i].tensor;
      const auto own = static_cast<std::int64_t>(tensor.nbytes());
      if (const auto stored = plan.stored_as(i); stored != StoredAs::Plain) {
        const auto kept = stored_bytes(stored, tensor.numel(), tensor.scalar_type());
        const auto width = c10::elementSize(precision.param_dtype.value_or(tensor.scalar_type()));
        const auto whole = tensor.numel() * static_cast<std::int64_t>(width);
        cost.ddp += kept;
        cost.kept += whole;
        cost.held += whole + kept / shards;
        continue;
      }
      const auto bytes_in = [&](const std::optional<at::ScalarType>& dtype) {
        const bool converts = dtype && tensor.is_floating_point();
        return converts ? tensor.numel() * static_cast<std::int64_t>(c10::elementSize(*dtype)) : own;
      };
      const bool trains = tensor.requires_grad();
      const auto whole = bytes_in(precision.param_dtype), gradient = trains ? bytes_in(precision.reduce_dtype) : 0;
      const auto moments = trains ? 2 * own : 0;
      const bool copies = precision.param_dtype && *precision.param_dtype != tensor.scalar_type();
      cost.ddp += own + (copies ? whole : 0) + gradient + moments;
      if (plan.replicate || (plan.replicate_trained && trains)) {
        cost.held += own + (copies ? whole : 0) + gradient + moments;
        continue;
      }
      cost.kept += whole + gradient;
      cost.held += whole + gradient + (own + moments) / shards;
    }
  }
  return cost;
}

SEALIFT_BODY std::int64_t free_memory(at::Device device) {
  if (!device.is_cpu()) {
    auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
    return allocator ? static_cast<std::int64_t>(allocator->getMemoryInfo(device.index()).first) : 0;
  }
  return host::free_memory();
}

SEALIFT_BODY KeepChoice choose_keep_gathered(const Policy& policy, const KeepCost& cost, Collectives& world,
                                             at::Device device) {
  const auto mebibytes = [](std::int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  const auto costs = "keeping units gathered between micro-batches costs each rank " + mebibytes(cost.kept);
  if (policy.keep_gathered != KeepGathered::Auto) {
    const bool keep = policy.keep_gathered == KeepGathered::Always;
    return {keep, costs + "; the policy says " + (keep ? "always" : "never")};
  }
  auto budget = policy.memory_budget;
  if (budget == 0) {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    const auto mine = torch::tensor(
        {static_cast<std::int64_t>(std::hash<std::string>{}(host.data())), free_memory(device)}, torch::kInt64);
    auto all = mine.repeat({world.size()}).to(device);
    world.all_gather(all, mine.to(device), "free memory").wait();
    all = all.cpu().view({-1, 2});
    for (std::int64_t rank = 0; rank < world.size(); ++rank) {
      const auto sharing = device.is_cpu() ? all.select(1, 0).eq(all[rank][0]).sum().item<std::int64_t>() : 1;
      const auto share = all[rank][1].item<std::int64_t>() / sharing;
      budget = rank == 0 ? share : std::min(budget, share);
    }
  }
  const bool keep = cost.kept <= budget / 2 && cost.held <= cost.ddp;
  return {keep, costs + " of " + mebibytes(budget) + "; a step would hold " + mebibytes(cost.held) + ", under ddp " +
                    mebibytes(cost.ddp) + (keep ? ": kept" : ": freed, and gathered again for each micro-batch")};
}

}  // namespace sealift::train
