// SPDX-License-Identifier: Apache-2.0
// A collective in flight: what it sends, how it is waited for, how it fails.
// Between `channel`, whose engines it uses, and `collectives`, which says who sends what to whom.
// A wait for the CPU ends in one of three ways: the collective is done, the watch aborts it, or the engine breaks and
// the watch finds the cause. On a device no thread waits: the current stream does, and the watch asks the device.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/channel.hpp>

namespace sealift::train::detail {

/// A collective that was issued.
struct InFlight {
  std::shared_ptr<Channel> channel;
  Label label;
  std::uint64_t number = 0;  ///< in its group
  int tag = 0;
  std::size_t group = 0;  ///< in the watch
  IssuedCollectives::Works works;
  enum class Engine { PointToPoint, Worker, Device } engine = Engine::PointToPoint;
  std::function<void()> finish;  ///< runs once all data is there
  at::Tensor buffer;

  /// The other ranks need this collective even if its ticket is dropped.
  ~InFlight();

  void send(const at::Tensor& part, std::int64_t peer);
  void receive(const at::Tensor& part, std::int64_t peer);

  /// Sends each peer a part and gets one from each; `mine(peer)` and `theirs(peer)` say which. Empty parts, of which
  /// both sides know, do not travel.
  template <class Mine, class Theirs>
  void exchange(const Mine& mine, const Theirs& theirs) {
    const auto rank = channel->rank(), size = channel->size();
    issue([&] {
      for (std::int64_t k = 1; k < size; ++k) {
        const auto peer = (rank + size - k) % size;
        if (const at::Tensor part = theirs(peer); part.numel() > 0) receive(part, peer);
      }
      for (std::int64_t k = 1; k < size; ++k) {
        const auto peer = (rank + k) % size;
        if (const at::Tensor part = mine(peer); part.numel() > 0) send(part, peer);
      }
    });
  }

  /// Issues what `call(gloo)` returns: a collective that Gloo does as a whole.
  template <class Call>
  void issue_whole(const Call& call) {
    engine = Engine::Worker;
    issue([&] {
      if (!channel->lines) {
        const IssuedCollectives::Waiting waiting(channel->watch->issued(), label, group, number, nullptr);
        channel->lines = channel->connect();
      }
      channel->lines->set_tag(tag);
      works.push_back(call(*channel->lines->gloo));
      ++channel->lines->in_worker;
    });
  }

  /// Issues what `call(engine)` returns: a collective on the device.
  template <class Call>
  void issue_on_device(const Call& call) {
    engine = Engine::Device;
    issue([&] {
      auto inputs = mark_stream(channel->device);
      works.push_back(call(*channel->engine));
      const auto* light = dynamic_cast<const LightWorks*>(channel->engine.get());
      channel->watch->issued().launch(
          group, number, label, light ? light->without_tensors(*works.front()) : works.front(), std::move(inputs));
    });
  }

  /// Calls an engine; one that is broken throws on issue too.
  template <class Call>
  void issue(const Call& call) {
    try {
      call();
    } catch (const std::exception& error) {
      works.clear();
      broken(error);
    }
  }

  void wait();

 private:
  int world_rank(std::int64_t peer) const { return static_cast<int>(channel->members[static_cast<std::size_t>(peer)]); }

  void wait_watched(const IssuedCollectives::Works& waited);

  [[noreturn]] void broken(const std::exception& error);
};

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/in_flight_inl.hpp>
#endif
