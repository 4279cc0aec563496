// SPDX-License-Identifier: Apache-2.0
// The bodies of channel.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/channel.hpp>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace sealift::train {

namespace detail {

/// Gloo with a tag of our choice for its next collective. The tag is made from the label, so that ranks that disagree
/// wait for each other, which the watch sees; Gloo alone would abort the process over sizes that do not match.
class TaggedGloo final : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;
  void set_tag(int tag) { collectiveCounter_ = static_cast<std::uint32_t>(tag); }
};

SEALIFT_BODY void GlooLines::set_tag(int tag) const {
  if (auto* tagged = dynamic_cast<TaggedGloo*>(gloo.get())) tagged->set_tag(tag);
}

SEALIFT_BODY GlooLines::~GlooLines() {
  // After a failure Gloo's threads wait until the time-out, and its destructor waits for them: leave both to the end
  // of the process.
  if (in_worker > 0) gloo.release();
}

SEALIFT_BODY OwnedEngines::~OwnedEngines() {
  // After an error the other ranks may never come to it.
  if (watch->issued().has_failed() || std::uncaught_exceptions() > 0) {
    watch->engines().abort();
    return;
  }
  for (auto engine = all.rbegin(); engine != all.rend(); ++engine) {
    DeviceEngines::quietly([&] { (*engine)->shutdown(); });
  }
}

SEALIFT_BODY int Channel::tag(std::uint64_t label_hash, std::uint64_t number) const {
  return static_cast<int>(((label_hash ^ salt()) & 0x7ffff) << 11 | (number & 0x7ff));
}

SEALIFT_BODY int Channel::check_tag(std::uint64_t number) const {
  return static_cast<int>(1U << 30 | (salt() & 0x3ff) << 20 | (number & 0xfffff));
}

SEALIFT_BODY at::Tensor Channel::take_buffer(std::int64_t bytes) {
  auto best = spare.end();
  for (auto it = spare.begin(); it != spare.end(); ++it) {
    if (it->numel() >= bytes && (best == spare.end() || it->numel() < best->numel())) best = it;
  }
  if (best == spare.end()) return at::empty({bytes}, at::kByte);
  auto buffer = *best;
  spare.erase(best);
  return buffer;
}

SEALIFT_BODY void Channel::give_buffer(at::Tensor buffer) {
  spare.push_back(std::move(buffer));
  if (spare.size() <= 2) return;
  spare.erase(
      std::min_element(spare.begin(), spare.end(), [](const auto& a, const auto& b) { return a.numel() < b.numel(); }));
}

}  // namespace detail

}  // namespace sealift::train
