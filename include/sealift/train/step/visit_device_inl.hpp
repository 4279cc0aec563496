// SPDX-License-Identifier: Apache-2.0
// The bodies of visit_device.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/visit_device.hpp>

#include <algorithm>
#include <array>

namespace sealift::train {

SEALIFT_BODY void visit_device(SideStreams& streams, at::Device device, const std::vector<Visit>& visits) {
  constexpr std::size_t kSlots = 3;     // one comes, one is worked on, one goes
  constexpr std::int64_t kAlign = 512;  // as the allocators of devices align
  const auto aligned = [](std::size_t bytes) {
    return (static_cast<std::int64_t>(bytes) + kAlign - 1) / kAlign * kAlign;
  };
  if (visits.empty()) return;
  struct Slot {
    std::int64_t bytes = 0;
    at::Tensor memory;
    SideStreams::Mark left;  ///< what was in it has gone home
  };
  std::array<Slot, kSlots> slots;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    std::int64_t bytes = 0;
    for (const auto& home : visits[i].homes) bytes += aligned(home.nbytes());
    slots[i % kSlots].bytes = std::max(slots[i % kSlots].bytes, bytes);
  }
  for (auto& slot : slots) slot.memory = at::empty({slot.bytes}, torch::dtype(at::kByte).device(device));
  // Earlier work of the current stream may still use the memory.
  streams.wait(SideStreams::In, streams.mark(SideStreams::Current));

  std::vector<std::vector<at::Tensor>> copies(visits.size());
  std::vector<SideStreams::Mark> arrived(visits.size());
  const auto bring = [&](std::size_t i) {
    auto& slot = slots[i % kSlots];
    std::int64_t offset = 0;
    for (const auto& home : visits[i].homes) {
      const auto bytes = static_cast<std::int64_t>(home.nbytes());
      copies[i].push_back(
          slot.memory.narrow(0, offset, bytes).view(home.scalar_type()).as_strided(home.sizes(), home.strides()));
      offset += aligned(home.nbytes());
    }
    streams.wait(SideStreams::In, slot.left);
    streams.run(SideStreams::In, [&visit = visits[i], to = copies[i]] {
      for (std::size_t j = 0; j < to.size(); ++j) to[j].copy_(visit.homes[j], /*non_blocking=*/true);
    });
    arrived[i] = streams.mark(SideStreams::In);
  };

  bring(0);
  for (std::size_t i = 0; i < visits.size(); ++i) {
    if (i + 1 < visits.size()) bring(i + 1);
    streams.wait(SideStreams::Current, arrived[i]);
    streams.run(SideStreams::Current, [&visit = visits[i], at = copies[i]] { visit.work(at); });
    streams.wait(SideStreams::Out, streams.mark(SideStreams::Current));
    streams.run(SideStreams::Out, [&visit = visits[i], from = copies[i]] {
      for (std::size_t j = 0; j < from.size(); ++j) visit.homes[j].copy_(from[j], /*non_blocking=*/true);
    });
    slots[i % kSlots].left = streams.mark(SideStreams::Out);
    copies[i].clear();
  }
  const auto& last = slots[(visits.size() - 1) % kSlots].left;
  streams.wait(SideStreams::Current, last);  // the memory goes back to the current stream
  streams.finish(last);
}

}  // namespace sealift::train
