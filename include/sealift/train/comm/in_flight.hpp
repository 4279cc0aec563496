// SPDX-License-Identifier: Apache-2.0
// A collective in flight: what it sends, how it is waited for, how it fails.
// Between `channel`, whose engines it uses, and `collectives`, which says who sends what to whom.
// A wait for the CPU ends in one of three ways: the collective is done, the watch aborts it, or the engine breaks and
// the watch finds the cause. On a device no thread waits: the current stream does, and the watch asks the device.
#pragma once

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
  ~InFlight() {
    // A stream must wait even after an error, or the device would write into memory that is something else by then.
    if (works.empty() || (engine != Engine::Device && std::uncaught_exceptions() > 0)) return;
    try {
      wait();
    } catch (const std::exception&) {
      // The watch keeps the failure for the next collective.
    }
  }

  void send(const at::Tensor& part, std::int64_t peer) {
    std::vector<at::Tensor> tensors{part};
    works.push_back(channel->world->gloo->send(tensors, world_rank(peer), tag));
  }
  void receive(const at::Tensor& part, std::int64_t peer) {
    std::vector<at::Tensor> tensors{part};
    works.push_back(channel->world->gloo->recv(tensors, world_rank(peer), tag));
  }

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

  void wait() {
    const auto waited = std::exchange(works, {});
    if (!waited.empty()) {
      if (engine == Engine::Device) {
        // Not `wait`, which would block this thread. The stream waits whether or not the rank has failed.
        issue([&] {
          for (const auto& work : waited) work->synchronize();
        });
        if (const auto error = channel->watch->issued().device_error()) {
          channel->watch->broken(error->first, error->second);
        }
        channel->watch->issued().check(label);
      } else {
        wait_watched(waited);
      }
    }
    if (auto call = std::exchange(finish, nullptr)) call();
    if (buffer.defined()) channel->give_buffer(std::move(buffer));
  }

 private:
  int world_rank(std::int64_t peer) const { return static_cast<int>(channel->members[static_cast<std::size_t>(peer)]); }

  void wait_watched(const IssuedCollectives::Works& waited) {
    auto& watch = *channel->watch;
    const auto since = RankWatch::Clock::now();
    // The watch decides when to give up; later than this only a watch whose store hangs has not decided.
    const auto limit = watch.timeout() + std::chrono::milliseconds(200);
    const auto left = [&] {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(since + limit - RankWatch::Clock::now());
      return std::max(rest, std::chrono::milliseconds(1));
    };
    bool done = true;
    try {
      const IssuedCollectives::Waiting waiting(watch.issued(), label, group, number,
                                               engine == Engine::PointToPoint ? &waited : nullptr);
      for (const auto& work : waited) {
        if (engine == Engine::PointToPoint) {
          done = done && work->wait(left());
          continue;
        }
        while (done && !work->isCompleted()) {
          try {
            work->wait(std::min<std::chrono::milliseconds>(left(), std::chrono::milliseconds(100)));
          } catch (const std::exception&) {
            // Either a slice timed out, and this kind of work can be waited for again; or it broke, and throws again
            // below.
            done = !watch.issued().has_failed() && left().count() > 1;
          }
        }
        if (done) work->wait();
      }
    } catch (const std::exception& error) {
      done = false;
      if (left() > std::chrono::milliseconds(1)) broken(error);
    }
    if (!done) watch.give_up(label);
    if (engine == Engine::Worker) --channel->lines->in_worker;
  }

  [[noreturn]] void broken(const std::exception& error) {
    const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
    std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
    text = text.substr(0, text.find('\n'));
    if (text.starts_with("[")) text.erase(0, text.find("] ") + 2);  // the place in Gloo's source
    channel->watch->broken(label, text);
  }
};

}  // namespace sealift::train::detail
