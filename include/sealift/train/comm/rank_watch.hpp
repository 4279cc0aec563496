// SPDX-License-Identifier: Apache-2.0
// Watches whether all ranks do the same, so that ranks that disagree, fail or stop end in one clear message on every
// rank instead of a hang. Collectives tell it what they issue and wait for; it looks only while somebody waits long.
// One thread per rank does the looking: a Gloo wait that ran out may not be waited for again, and a store whose host
// was stopped blocks whoever asks it.
#pragma once

#include <sealift/train/comm/collective_label.hpp>

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sealift::train {

using Store = c10::intrusive_ptr<c10d::Store>;

/// One per rank of a world of several; a rank alone has none.
class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::milliseconds;
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  RankWatch(Store store, std::int64_t rank, std::int64_t size, milliseconds timeout)
      : store_(std::move(store)), rank_(rank), size_(size), timeout_(timeout) {}

  /// Starts the thread; it ends when the last owner lets go.
  static std::shared_ptr<RankWatch> start(const Store& store, std::int64_t rank, std::int64_t size,
                                          milliseconds timeout) {
    // A clone has its own connection, so the watch and others never wait for each other.
    auto watch = std::make_shared<RankWatch>(store->clone(), rank, size, timeout);
    watch->thread_ = std::thread([watch] { watch->run(); });
    auto* raw = watch.get();
    return {raw, [watch = std::move(watch)](RankWatch*) { watch->stop(); }};
  }

  std::int64_t rank() const { return rank_; }
  milliseconds timeout() const { return timeout_; }

  /// The optimizer step that messages name.
  void set_step(std::int64_t step) { step_ = step; }
  std::int64_t step() const { return step_; }

  /// Tells all other ranks why this one ends: a program calls it where it catches. Does nothing for an error that came
  /// from the watch itself. Returns when the others can read it, at the latest after a second.
  void report_failure(const std::string& text) {
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) return;  // the others know
    failure_ = name_ranks({rank_}) + " failed in step " + std::to_string(step_) + ": " + text;
    outbox_ = failure_;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [&] { return outbox_.empty() || store_gone_; });
  }

  /// A group of ranks; `members` are their ranks in the world.
  std::size_t add_group(std::string name, std::vector<std::int64_t> members) {
    const std::lock_guard lock(mutex_);
    groups_.push_back({std::move(name), std::move(members), 0, {}});
    return groups_.size() - 1;
  }

  const std::string& group_name(std::size_t group) const { return groups_[group].name; }
  const std::vector<std::int64_t>& members(std::size_t group) const { return groups_[group].members; }

  /// Notes that this rank comes to the next collective of `group` and returns its number, from 0. Throws after a
  /// failure.
  std::uint64_t issue(std::size_t group, const Label& label) {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw_failure(label);
    auto& record = groups_[group];
    record.recent[record.issued % kRecent] = label;
    latest_ = {group, record.issued};
    return record.issued++;
  }

  /// While it lives, this rank waits for a collective.
  class Waiting {
   public:
    /// `works`: what to abort when waiting is in vain; they stay alive as long as this does. Throws after a failure.
    Waiting(RankWatch& watch, const Label& label, std::size_t group, std::uint64_t number, const Works* works)
        : watch_(watch) {
      const std::lock_guard lock(watch_.mutex_);
      if (!watch_.failure_.empty()) watch_.throw_failure(label);
      id_ = watch_.next_wait_++;
      watch_.waits_[id_] = {group, number, Clock::now(), works};
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() {
      const std::lock_guard lock(watch_.mutex_);
      watch_.waits_.erase(id_);
    }

   private:
    RankWatch& watch_;
    std::uint64_t id_;
  };

  bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return !failure_.empty();
  }

  /// Throws what ended this rank's part in `label`.
  [[noreturn]] void stop_at(const Label& label) const {
    const std::lock_guard lock(mutex_);
    throw_failure(label);
  }

  /// The wait for `label` ended without it: throws what ended it, or that its time is up and the watch hangs.
  [[noreturn]] void give_up(const Label& label) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) {
      hangs_ = true;
      failure_ = "it did not end within " + seconds() + store_silent();
    }
    throw_failure(label);
  }

  /// Ranks were found to disagree: tells the others and throws.
  [[noreturn]] void disagree(const Label& label, const std::string& text) {
    report_own(text);
    stop_at(label);
  }

  /// The engine broke with `error` while in `label`: finds out why, for up to two seconds, and throws it.
  [[noreturn]] void broken(const Label& label, const std::string& error) {
    std::unique_lock lock(mutex_);
    if (failure_.empty()) {
      broken_ = label.text() + " broke in step " + std::to_string(step_) + " (" + error + ")";
      changed_.notify_all();
      changed_.wait_for(lock, 2 * kPatience, [&] { return !failure_.empty(); });
      if (failure_.empty()) failure_ = broken_ + store_silent();
    }
    throw_failure(label);
  }

 private:
  static constexpr std::size_t kRecent = 64;  ///< collectives of a group that are remembered
  static constexpr std::size_t kPosted = 16;  ///< of those, told to others
  static constexpr auto kPatience = milliseconds(1000);

  struct Group {
    std::string name;
    std::vector<std::int64_t> members;
    std::uint64_t issued = 0;
    std::array<Label, kRecent> recent;
  };
  struct Wait {
    std::size_t group = 0;
    std::uint64_t number = 0;
    Clock::time_point since;
    const Works* works = nullptr;
  };
  /// What another rank said of itself.
  struct Peer {
    std::int64_t bell = 0;
    std::map<std::string, std::uint64_t> issued;                                                ///< by group
    std::map<std::pair<std::string, std::uint64_t>, std::pair<std::string, std::string>> came;  ///< hash, text
    std::optional<std::pair<std::string, std::uint64_t>> waits;
    std::string last = "nothing";
  };

  [[noreturn]] void throw_failure(const Label& label) const {
    TORCH_CHECK(false, "rank ", rank_, " stops at ", label.text(), " in step ", step_.load(), ": ", failure_);
  }

  void report_own(const std::string& text) {
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = outbox_ = text;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [&] { return outbox_.empty() || store_gone_; });
  }

  std::string seconds() const {
    std::ostringstream text;
    text << static_cast<double>(timeout_.count()) / 1000 << " s";
    return text.str();
  }

  /// How long a wait may take before it is looked at.
  milliseconds slice() const { return std::min<milliseconds>(kPatience, timeout_ / 4); }

  std::string store_silent() const {
    return store_gone_ ? "; the store is gone too: the process that serves it, rank 0 or the launcher, has ended"
                       : "; the store does not answer: the process that serves it, rank 0 or the launcher, is stopped";
  }

  void stop() {
    std::unique_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
    const bool ended = changed_.wait_for(lock, hangs_ ? milliseconds(0) : kPatience, [&] { return ended_; });
    lock.unlock();
    // A thread that hangs in a store whose host is stopped owns what it touches, so it may be left behind.
    ended ? thread_.join() : thread_.detach();
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_ || !outbox_.empty()) {
      // Every look of a waiting rank asks for all others, so many ranks look less often, but not past a time-out.
      auto next = Clock::now() + (waits_.empty() ? slice() : std::max(slice() / 4, size_ * milliseconds(2)));
      for (const auto& [id, wait] : waits_)
        next = std::min(next, std::max(wait.since + timeout_, Clock::now() + milliseconds(1)));
      changed_.wait_until(lock, next,
                          [&] { return stop_ || !outbox_.empty() || (!broken_.empty() && failure_.empty()); });
      try {
        if (!store_gone_) look(lock);
      } catch (const std::exception&) {
        if (!lock.owns_lock()) lock.lock();
        store_gone_ = true;
      }
      if (!store_gone_) continue;
      outbox_.clear();
      changed_.notify_all();
      if (failure_.empty() && !broken_.empty()) fail(broken_ + store_silent());
      for (const auto& [id, wait] : waits_) {
        if (failure_.empty() && Clock::now() - wait.since > slice()) {
          const auto& group = groups_[wait.group];
          fail("waiting for " + group.recent[wait.number % kRecent].text() + " in step " + std::to_string(step_) +
               store_silent());
          break;
        }
      }
    }
    ended_ = true;
    changed_.notify_all();
  }

  /// Ends every wait of this rank with `text`.
  void fail(const std::string& text) {
    failure_ = text;
    for (const auto& [id, wait] : waits_) {
      if (!wait.works) continue;
      for (const auto& work : *wait.works) work->abort();
    }
    changed_.notify_all();
  }

  /// One look around; the lock is open while the store is asked.
  void look(std::unique_lock<std::mutex>& lock) {
    if (!outbox_.empty()) {
      const auto text = outbox_;
      lock.unlock();
      post_failure("O" + text);
      lock.lock();
      outbox_.clear();
      changed_.notify_all();
      return;
    }
    if (!failure_.empty()) return;
    if (!broken_.empty()) return find_cause(lock);

    // A rank that begins to wait long rings the bell, and every rank that hears it says where it is.
    std::map<std::uint64_t, Wait> slow;
    bool ring = false;
    for (const auto& [id, wait] : waits_) {
      if (Clock::now() - wait.since < slice()) continue;
      slow[id] = wait;
      if (id < rung_until_) continue;
      ring = true;
      rung_until_ = id + 1;
    }
    std::set<std::int64_t> awaited;
    for (const auto& [id, wait] : slow) {
      const auto& members = groups_[wait.group].members;
      awaited.insert(members.begin(), members.end());
    }
    awaited.erase(rank_);
    lock.unlock();
    const auto bell = store_->add("bell", ring ? 1 : 0);
    if (ring) rung_ = bell;
    std::string cause;
    std::map<std::int64_t, Peer> peers;
    if (bell != heard_ || !slow.empty()) {
      heard_ = bell;
      cause = read_failures().first;
      lock.lock();
      const auto state = describe(slow);
      lock.unlock();
      store_->set("state/" + std::to_string(rank_), std::to_string(bell) + "\n" + state);
      for (const auto rank : awaited) read_state(rank, peers);
    }
    lock.lock();
    if (!failure_.empty()) return;
    if (!cause.empty()) return fail(cause);
    for (const auto& [id, wait] : slow) {
      if (!waits_.contains(id)) continue;  // it came to an end meanwhile
      auto text = disagreement(wait, peers);
      if (text.empty() && Clock::now() - wait.since >= timeout_) text = absence(wait, peers);
      if (text.empty()) continue;
      outbox_ = text;
      return fail(text);
    }
  }

  /// Two ranks that came to different collectives, or that wait for each other; empty when there are none.
  std::string disagreement(const Wait& wait, const std::map<std::int64_t, Peer>& peers) const {
    const auto& group = groups_[wait.group];
    const auto mine = group.recent[wait.number % kRecent];
    const auto say = [&](std::int64_t rank, const std::string& theirs) {
      return "ranks disagree in step " + std::to_string(step_) + ": rank " + std::to_string(rank_) + " came to " +
             mine.text() + ", rank " + std::to_string(rank) + " to " + theirs + ", in group " + group.name +
             "; every rank must run the same units in the same order, with the same sizes";
    };
    for (const auto rank : group.members) {
      const auto peer = peers.find(rank);
      if (peer == peers.end()) continue;
      const auto came = peer->second.came.find({group.name, wait.number});
      if (came != peer->second.came.end() && came->second.first != std::to_string(mine.hash())) {
        return say(rank, came->second.second);
      }
      const auto issued = peer->second.issued.find(group.name);
      const bool has_come = issued != peer->second.issued.end() && issued->second > wait.number;
      if (has_come || !peer->second.waits) continue;
      // They wait where this rank has not come, and it waits where they have not.
      const auto& [their_group, their_number] = *peer->second.waits;
      for (const auto& other : groups_) {
        if (other.name == their_group && other.issued <= their_number) {
          const auto theirs = peer->second.came.find(*peer->second.waits);
          return say(rank, theirs == peer->second.came.end() ? "group " + their_group : theirs->second.second);
        }
      }
    }
    return {};
  }

  /// The ranks that did not come within the time-out.
  std::string absence(const Wait& wait, const std::map<std::int64_t, Peer>& peers) const {
    const auto& group = groups_[wait.group];
    std::vector<std::int64_t> missing, silent, present{rank_};
    std::string where;
    for (const auto rank : group.members) {
      if (rank == rank_) continue;
      const auto peer = peers.find(rank);
      if (peer == peers.end() || peer->second.bell < rung_) {
        silent.push_back(rank);
        missing.push_back(rank);
        continue;
      }
      const auto issued = peer->second.issued.find(group.name);
      if (issued != peer->second.issued.end() && issued->second > wait.number) {
        present.push_back(rank);
      } else {
        missing.push_back(rank);
        where += "; rank " + std::to_string(rank) + " last came to " + peer->second.last;
      }
    }
    std::sort(present.begin(), present.end());
    std::ostringstream text;
    text << (missing.empty() ? "the data" : name_ranks(missing)) << " did not come to "
         << group.recent[wait.number % kRecent].text() << " of group " << group.name << " in step " << step_
         << " within " << seconds() << "; " << name_ranks(present)
         << (present.size() == 1 ? " waits there" : " wait there") << where;
    if (!silent.empty()) text << "; no word from " << name_ranks(silent) << ": stopped, or cut off";
    return text.str();
  }

  /// The engine broke: posts that, and looks for the rank that was the first to fail.
  void find_cause(std::unique_lock<std::mutex>& lock) {
    const auto mine = broken_;
    lock.unlock();
    const auto bell = post_failure("S" + mine);
    std::string cause;
    std::vector<std::int64_t> silent;
    // Who lives and waits for nothing looks once a slice.
    for (const auto until = Clock::now() + kPatience + slice() / 2; Clock::now() < until;) {
      std::tie(cause, silent) = read_failures();
      if (!cause.empty() || silent.empty()) break;
      std::this_thread::sleep_for(milliseconds(20));
    }
    if (cause.empty()) {
      cause = mine;
      std::map<std::int64_t, Peer> peers;
      std::erase_if(silent, [&](std::int64_t rank) {  // it has nothing to post, but heard this rank's bell
        read_state(rank, peers);
        return peers.contains(rank) && peers[rank].bell >= bell;
      });
      if (!silent.empty()) cause += "; no word from " + name_ranks(silent) + ": ended without one, killed, or cut off";
      post_failure("O" + cause);
    }
    lock.lock();
    if (failure_.empty()) fail(cause);
  }

  /// Returns the bell that tells of it.
  std::int64_t post_failure(const std::string& text) {
    store_->set("failure/" + std::to_string(rank_), text);
    return store_->add("bell", 1);
  }

  /// The first cause that a rank posted, empty without one, and the ranks that posted nothing.
  std::pair<std::string, std::vector<std::int64_t>> read_failures() {
    std::vector<std::int64_t> silent;
    for (std::int64_t rank = 0; rank < size_; ++rank) {
      const auto key = "failure/" + std::to_string(rank);
      if (rank == rank_) continue;
      if (!store_->check({key})) {
        silent.push_back(rank);
      } else if (const auto text = store_->get_to_str(key); text.starts_with("O")) {
        return {text.substr(1), {}};
      }
    }
    return {{}, silent};
  }

  /// This rank's state as lines: waits, then per group how many were issued and the latest of them.
  std::string describe(const std::map<std::uint64_t, Wait>& slow) const {
    std::ostringstream out;
    if (!slow.empty()) {
      const auto& wait = slow.begin()->second;
      out << "waits\t" << groups_[wait.group].name << "\t" << wait.number << "\n";
    }
    if (latest_) {
      const auto& [group, number] = *latest_;
      out << "last\t\t0\t\t" << groups_[group].recent[number % kRecent].text() << "\n";
    }
    for (const auto& group : groups_) {
      out << "issued\t" << group.name << "\t" << group.issued << "\n";
      auto first = group.issued > kPosted ? group.issued - kPosted : 0;
      for (const auto& [id, wait] : slow) {
        if (&groups_[wait.group] == &group) first = std::min(first, wait.number);
      }
      for (first = std::max(first, group.issued > kRecent ? group.issued - kRecent : 0); first < group.issued;
           ++first) {
        const auto& label = group.recent[first % kRecent];
        out << "came\t" << group.name << "\t" << first << "\t" << label.hash() << "\t" << label.text() << "\n";
      }
    }
    return out.str();
  }

  void read_state(std::int64_t rank, std::map<std::int64_t, Peer>& peers) {
    const auto key = "state/" + std::to_string(rank);
    if (!store_->check({key})) return;
    std::istringstream lines(store_->get_to_str(key));
    auto& peer = peers[rank];
    std::string line;
    std::getline(lines, line);
    peer.bell = std::stoll(line);
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      std::string kind, group, number, hash, text;
      std::getline(fields, kind, '\t');
      std::getline(fields, group, '\t');
      std::getline(fields, number, '\t');
      std::getline(fields, hash, '\t');
      std::getline(fields, text);
      const auto count = std::stoull(number);
      if (kind == "waits") peer.waits = {group, count};
      if (kind == "issued") peer.issued[group] = count;
      if (kind == "came") {
        peer.came[{group, count}] = {hash, text};
      }
      if (kind == "last") peer.last = text;
    }
  }

  const Store store_;  ///< after the start, only the thread touches it
  const std::int64_t rank_, size_;
  const milliseconds timeout_;
  std::atomic<std::int64_t> step_ = 0;
  std::thread thread_;
  std::int64_t heard_ = 0;  ///< the bell, when this rank last said where it is
  std::int64_t rung_ = 0;   ///< the bell, when this rank last rang it: who is alive has heard that

  mutable std::mutex mutex_;  ///< of everything below
  std::condition_variable changed_;
  std::deque<Group> groups_;  ///< grows only while groups are made, by the one thread that reads it
  std::optional<std::pair<std::size_t, std::uint64_t>> latest_;  ///< group and number of the last that was issued
  std::map<std::uint64_t, Wait> waits_;
  std::uint64_t next_wait_ = 0, rung_until_ = 0;
  std::string failure_;  ///< why this rank takes no further part; empty while it does
  std::string outbox_;   ///< a failure to tell to the others
  std::string broken_;   ///< what broke here, while its cause is looked for
  bool store_gone_ = false;
  bool hangs_ = false;  ///< the thread, in a store that does not answer
  bool stop_ = false, ended_ = false;
};

}  // namespace sealift::train
