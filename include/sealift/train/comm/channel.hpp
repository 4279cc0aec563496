// SPDX-License-Identifier: Apache-2.0
// One group's engines, and a collective in flight on them: what it sends, how it is waited for, how it fails.
// Between `rank_watch`, which says why a wait is in vain, and `collectives`, which says who sends what to whom.
// A wait ends in one of three ways: it is done, the watch ended it, or the engine broke and the watch finds out why.
#pragma once

#include <sealift/train/comm/rank_watch.hpp>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <functional>
#include <unordered_set>
#include <utility>

namespace sealift::train {

/// Calls and bytes of one kind of collective on this rank.
struct Traffic {
  std::int64_t calls = 0;
  /// What this rank sends: f * size for gather and reduce-scatter, 2f * size for all-reduce, with f = (W - 1) / W, as
  /// a ring would; (W - 1) * size for an all-reduce of at most `kFewBytes`. Of a broadcast, which is a tree, the mean
  /// over ranks: f * size.
  std::int64_t bytes = 0;

  bool operator==(const Traffic&) const = default;
};

/// What a rank has sent since it started counting.
struct TrafficReport {
  Traffic all_gather, reduce_scatter, all_reduce, broadcast;

  bool operator==(const TrafficReport&) const = default;
};

/// When ranks compare what they are about to do, before they do it.
enum class OrderCheck {
  Off,      ///< never: a difference shows when ranks have waited for a second
  NewOnly,  ///< when a collective follows another for the first time: nothing in steady state
  Always,   ///< before every collective
};

namespace detail {

/// Gloo that is told the tag of its next collective. The tag holds what the ranks must agree on, so ranks that differ
/// wait for each other, which the watch sees, where Gloo alone would end the process over sizes that do not match.
class TaggedGloo final : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;
  void set_tag(int tag) { collectiveCounter_ = static_cast<std::uint32_t>(tag); }
};

/// One group of ranks as this rank sees it. Belongs to one thread.
struct Channel {
  std::shared_ptr<RankWatch> watch;
  std::shared_ptr<TrafficReport> traffic;
  c10::intrusive_ptr<TaggedGloo> gloo;
  c10::intrusive_ptr<c10d::Backend> gathers, reductions;  ///< NCCL's, for CUDA tensors: a stream each, so they overlap
  std::size_t group = 0;                                  ///< in the watch
  std::size_t check_group = 0;                            ///< of the exchanges that compare
  OrderCheck order_check = OrderCheck::NewOnly;
  std::uint64_t previous = 0;                ///< hash of the last label
  std::unordered_set<std::uint64_t> agreed;  ///< that this label follows that one
  std::int64_t order_checks = 0;
  std::vector<at::Tensor> spare;  ///< byte buffers that no collective uses
  int in_worker = 0;              ///< collectives that a thread of Gloo's may be busy with

  ~Channel() {
    // After a failure Gloo's threads wait until the time-out, and its end waits for them: leave both to the process's.
    if (in_worker > 0) gloo.release();
  }

  std::int64_t rank() const { return gloo->getRank(); }
  std::int64_t size() const { return gloo->getSize(); }

  /// Memory that is fresh is slow, so buffers are kept, two of them at most.
  at::Tensor take_buffer(std::int64_t bytes) {
    auto best = spare.end();
    for (auto it = spare.begin(); it != spare.end(); ++it) {
      if (it->numel() >= bytes && (best == spare.end() || it->numel() < best->numel())) best = it;
    }
    if (best == spare.end()) return at::empty({bytes}, at::kByte);
    auto buffer = *best;
    spare.erase(best);
    return buffer;
  }
  void give_buffer(at::Tensor buffer) {
    spare.push_back(std::move(buffer));
    if (spare.size() <= 2) return;
    spare.erase(std::min_element(spare.begin(), spare.end(),
                                 [](const auto& a, const auto& b) { return a.numel() < b.numel(); }));
  }
};

/// A collective that was issued.
struct InFlight {
  std::shared_ptr<Channel> channel;
  Label label;
  std::uint64_t number = 0;  ///< in its group
  int tag = 0;
  std::size_t group = 0;  ///< in the watch
  IssuedCollectives::Works works;
  enum class Engine { PointToPoint, Worker, Nccl } engine = Engine::PointToPoint;
  std::function<void()> finish;  ///< what is left to do when all has come
  at::Tensor buffer;

  /// A ticket that is dropped still serves the other ranks.
  ~InFlight() {
    if (works.empty() || std::uncaught_exceptions() > 0) return;
    try {
      wait();
    } catch (const std::exception&) {
      // The watch keeps it for the next collective.
    }
  }

  void send(const at::Tensor& part, std::int64_t peer) {
    std::vector<at::Tensor> tensors{part};
    works.push_back(channel->gloo->send(tensors, static_cast<int>(peer), tag));
  }
  void receive(const at::Tensor& part, std::int64_t peer) {
    std::vector<at::Tensor> tensors{part};
    works.push_back(channel->gloo->recv(tensors, static_cast<int>(peer), tag));
  }

  /// Sends each peer a part and gets one from each; `mine(peer)` and `theirs(peer)` say which.
  template <class Mine, class Theirs>
  void exchange(const Mine& mine, const Theirs& theirs) {
    const auto rank = channel->rank(), size = channel->size();
    issue([&] {
      for (std::int64_t k = 1; k < size; ++k) receive(theirs((rank + size - k) % size), (rank + size - k) % size);
      for (std::int64_t k = 1; k < size; ++k) send(mine((rank + k) % size), (rank + k) % size);
    });
  }

  /// Runs what talks to an engine; an engine that broke throws on issue too.
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
      if (engine == Engine::Nccl) {
        issue([&] {
          for (const auto& work : waited) work->wait();
        });
      } else {
        wait_watched(waited);
      }
    }
    if (auto call = std::exchange(finish, nullptr)) call();
    if (buffer.defined()) channel->give_buffer(std::move(buffer));
  }

 private:
  void wait_watched(const IssuedCollectives::Works& waited) {
    auto& watch = *channel->watch;
    const auto since = RankWatch::Clock::now();
    // The watch decides when to give up; past that only a watch whose store hangs has not decided.
    const auto limit = watch.timeout() + std::chrono::milliseconds(200);
    const auto left = [&] {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(since + limit - RankWatch::Clock::now());
      return std::max(rest, std::chrono::milliseconds(1));
    };
    bool came = true;
    try {
      const IssuedCollectives::Waiting waiting(watch.issued(), label, group, number,
                                               engine == Engine::PointToPoint ? &waited : nullptr);
      for (const auto& work : waited) {
        if (engine == Engine::PointToPoint) {
          came = came && work->wait(left());
          continue;
        }
        while (came && !work->isCompleted()) {
          try {
            work->wait(std::min<std::chrono::milliseconds>(left(), std::chrono::milliseconds(100)));
          } catch (const std::exception&) {
            // A slice ran out, and this kind of work can be waited for again; or it broke, and says so below.
            came = !watch.issued().has_failed() && left().count() > 1;
          }
        }
        if (came) work->wait();
      }
    } catch (const std::exception& error) {
      came = false;
      if (left() > std::chrono::milliseconds(1)) broken(error);
    }
    if (!came) watch.give_up(label);
    if (engine == Engine::Worker) --channel->in_worker;
  }

  [[noreturn]] void broken(const std::exception& error) {
    const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
    std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
    text = text.substr(0, text.find('\n'));
    if (text.starts_with("[")) text.erase(0, text.find("] ") + 2);  // where in Gloo's source
    channel->watch->broken(label, text);
  }
};

}  // namespace detail

}  // namespace sealift::train
