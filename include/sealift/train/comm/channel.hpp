// SPDX-License-Identifier: Apache-2.0
// One group's engines, and a collective in flight on them: what it sends, how it is waited for, how it fails.
// Between `rank_watch`, which says why a wait cannot succeed, and `collectives`, which says who sends what to whom.
// A wait ends in one of three ways: the collective is done, the watch aborts it, or the engine breaks and the watch
// finds the cause.
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
  /// Sent by this rank, as by a ring of W ranks with f = (W - 1) / W: f * size for gather and reduce-scatter, 2f * size
  /// for all-reduce, but (W - 1) * size for an all-reduce of at most `kFewBytes`. For a broadcast, which is a tree, the
  /// mean over ranks: f * size.
  std::int64_t bytes = 0;

  bool operator==(const Traffic&) const = default;
};

/// A rank's traffic since counting started.
struct TrafficReport {
  Traffic all_gather, reduce_scatter, all_reduce, broadcast;

  bool operator==(const TrafficReport&) const = default;
};

/// When ranks compare labels before a collective.
enum class OrderCheck {
  Off,      ///< never: a difference shows after ranks have waited for a second
  NewOnly,  ///< when a collective follows another for the first time, so never in steady state
  Always,   ///< before every collective
};

namespace detail {

/// Gloo with a tag of our choice for its next collective. The tag is made from the label, so that ranks that disagree
/// wait for each other, which the watch sees; Gloo alone would abort the process over sizes that do not match.
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
  std::size_t check_group = 0;                            ///< in the watch, of the exchanges that compare labels
  OrderCheck order_check = OrderCheck::NewOnly;
  std::uint64_t previous = 0;                ///< hash of the last label
  std::unordered_set<std::uint64_t> agreed;  ///< hashes of pairs of labels that were compared, one after the other
  std::int64_t order_checks = 0;
  std::vector<at::Tensor> spare;  ///< byte buffers that no collective uses now
  int in_worker = 0;              ///< collectives that a thread of Gloo's may still run

  ~Channel() {
    // After a failure Gloo's threads wait until the time-out, and its destructor waits for them: leave both to the end
    // of the process.
    if (in_worker > 0) gloo.release();
  }

  std::int64_t rank() const { return gloo->getRank(); }
  std::int64_t size() const { return gloo->getSize(); }

  /// Fresh memory is slow, so at most two buffers are kept.
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
  std::function<void()> finish;  ///< runs once all data is there
  at::Tensor buffer;

  /// The other ranks need this collective even if its ticket is dropped.
  ~InFlight() {
    if (works.empty() || std::uncaught_exceptions() > 0) return;
    try {
      wait();
    } catch (const std::exception&) {
      // The watch keeps the failure for the next collective.
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
    if (engine == Engine::Worker) --channel->in_worker;
  }

  [[noreturn]] void broken(const std::exception& error) {
    const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
    std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
    text = text.substr(0, text.find('\n'));
    if (text.starts_with("[")) text.erase(0, text.find("] ") + 2);  // the place in Gloo's source
    channel->watch->broken(label, text);
  }
};

}  // namespace detail

}  // namespace sealift::train
