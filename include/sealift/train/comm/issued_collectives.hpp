// SPDX-License-Identifier: Apache-2.0
// What one rank has issued, what it waits for, and why it stopped: the state that a rank's threads share.
// `collectives` writes it on the thread that trains, `rank_watch` reads it on a thread of its own; reports of other
// ranks are compared with it here.
// A small value with a mutex of its own, so that a collective pays for two short locks and nothing else.
#pragma once

#include <sealift/train/comm/device_works.hpp>
#include <sealift/train/comm/rank_report.hpp>

#include <algorithm>
#include <atomic>

namespace sealift::train {

/// Thread-safe, apart from what says otherwise.
class IssuedCollectives {
 public:
  using Clock = std::chrono::steady_clock;
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  /// A wait of a thread, or of a device, for one collective.
  struct Wait {
    std::size_t group = 0;
    std::uint64_t number = 0;
    Label label;
    Clock::time_point since;
    const Works* works = nullptr;  ///< to abort when waiting is in vain; null when they cannot be
  };
  using Waits = std::map<std::uint64_t, Wait>;  ///< by an id that grows

  explicit IssuedCollectives(std::int64_t rank) : rank_(rank) {}

  std::int64_t rank() const { return rank_; }

  /// The optimizer step that messages name.
  void set_step(std::int64_t step) { step_ = step; }
  std::int64_t step() const { return step_; }

  /// A group of ranks; `members` are their ranks in the world. Returns its number.
  std::size_t add_group(std::string name, std::vector<std::int64_t> members) {
    const std::lock_guard lock(mutex_);
    groups_.push_back({std::move(name), std::move(members), 0, {}});
    return groups_.size() - 1;
  }

  const std::vector<std::int64_t>& members(std::size_t group) const {
    const std::lock_guard lock(mutex_);
    return groups_[group].members;
  }

  /// Notes that this rank issues the next collective of `group` and returns its number, from 0. Throws after a failure.
  std::uint64_t issue(std::size_t group, const Label& label) {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw_failure(label);
    auto& noted = groups_[group];
    noted.recent.size() < kRecent ? noted.recent.push_back(label)
                                  : static_cast<void>(noted.recent[noted.count % kRecent] = label);
    latest_ = {group, noted.count};
    return noted.count++;
  }

  /// While it lives, this rank waits for a collective.
  class Waiting {
   public:
    /// `works` stay alive as long as this does. Throws after a failure.
    Waiting(IssuedCollectives& issued, const Label& label, std::size_t group, std::uint64_t number, const Works* works)
        : issued_(issued) {
      const std::lock_guard lock(issued_.mutex_);
      if (!issued_.failure_.empty()) issued_.throw_failure(label);
      id_ = issued_.next_wait_++;
      issued_.waits_[id_] = {group, number, label, Clock::now(), works};
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() {
      const std::lock_guard lock(issued_.mutex_);
      issued_.waits_.erase(id_);
    }

   private:
    IssuedCollectives& issued_;
    std::uint64_t id_;
  };

  /// Notes that `work` runs on a device, where streams wait for it and no thread does; `inputs` is an event of the
  /// stream that makes its inputs, where there is one.
  void launch(std::size_t group, std::uint64_t number, const Label& label, c10::intrusive_ptr<c10d::Work> work,
              std::optional<c10::Event> inputs) {
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(mutex_);
      id = next_wait_++;
    }
    on_device_.add(group, {id, number, label, std::move(work), std::move(inputs), {}});
  }

  /// The waits of this rank's threads, and of its device: there the oldest collective of each group.
  Waits waits() const {
    Waits all;
    on_device_.waits([&](std::size_t group, const DeviceWorks::Running& running) {
      all[running.id] = {group, running.number, running.label, *running.since, nullptr};
    });
    const std::lock_guard lock(mutex_);
    all.insert(waits_.begin(), waits_.end());
    return all;
  }

  /// The first collective that broke on the device, and what its engine said.
  std::optional<std::pair<Label, std::string>> device_error() const { return on_device_.error(); }

  bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return !failure_.empty();
  }

  /// Ends this rank's part: every later call throws `reason`. Whether it does, or an earlier reason stands.
  bool fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return false;
    failure_ = reason;
    return true;
  }

  /// As `fail`, and aborts what this rank waits for. With `wait`, only if that wait has not ended meanwhile.
  bool fail_and_abort(const std::string& reason, std::optional<std::uint64_t> wait = {}) {
    const bool on_device = wait && on_device_.contains(*wait);
    const std::lock_guard lock(mutex_);
    if (!failure_.empty() || (wait && !on_device && !waits_.contains(*wait))) return false;
    failure_ = reason;
    for (const auto& [id, each] : waits_) {
      if (!each.works) continue;
      for (const auto& work : *each.works) work->abort();
    }
    return true;
  }

  /// Throws what ended this rank's part in `label`.
  [[noreturn]] void stop_at(const Label& label) const {
    const std::lock_guard lock(mutex_);
    throw_failure(label);
  }

  /// Throws after a failure what ended this rank's part in `label`.
  void check(const Label& label) const {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw_failure(label);
  }

  /// This rank's report, with the latest collectives of each group and those from what it has waited for as `slow`.
  RankReport report(std::int64_t epoch, const Waits& slow) const {
    const std::lock_guard lock(mutex_);
    RankReport report{.epoch = epoch};
    if (!slow.empty()) {
      const auto& wait = slow.begin()->second;
      report.waits = {groups_[wait.group].name, wait.number};
    }
    if (latest_) report.last = groups_[latest_->first].recent[latest_->second % kRecent].text();
    for (std::size_t number = 0; number < groups_.size(); ++number) {
      const auto& group = groups_[number];
      report.count[group.name] = group.count;
      tell(report, group, group.count > kReported ? group.count - kReported : 0);
      for (const auto& [id, wait] : slow) {
        if (wait.group == number) tell(report, group, wait.number);
      }
    }
    return report;
  }

  /// Names two ranks that issued different collectives, or that wait for each other; empty when there are none.
  std::string disagreement(const Wait& wait, const RankReports& others) const {
    const std::lock_guard lock(mutex_);
    const auto& group = groups_[wait.group];
    const auto& mine = wait.label;
    const auto say = [&](std::int64_t rank, const std::string& theirs) {
      return "ranks disagree in step " + std::to_string(step_) + ": rank " + std::to_string(rank_) + " came to " +
             mine.text() + ", rank " + std::to_string(rank) + " to " + theirs + ", in group " + group.name +
             "; every rank must run the same units in the same order, with the same sizes";
    };
    for (const auto rank : group.members) {
      const auto other = others.find(rank);
      if (other == others.end()) continue;
      const auto& report = other->second;
      const auto issued = report.issued.find({group.name, wait.number});
      if (issued != report.issued.end() && issued->second.hash != mine.hash()) return say(rank, issued->second.text);
      if (has_issued(report, group.name, wait.number) || !report.waits) continue;
      // The other rank waits for a collective that this rank has not issued, and this rank for one that it has not.
      const auto& [their_group, their_number] = *report.waits;
      for (const auto& each : groups_) {
        if (each.name != their_group || each.count > their_number) continue;
        const auto theirs = report.issued.find(*report.waits);
        return say(rank, theirs == report.issued.end() ? "group " + their_group : theirs->second.text);
      }
    }
    return {};
  }

  /// Names the ranks that did not issue what this rank has waited for as long as `timeout`. A report older than
  /// `epoch`, the latest that this rank began, counts as none.
  std::string absence(const Wait& wait, const RankReports& others, std::int64_t epoch,
                      const std::string& timeout) const {
    const std::lock_guard lock(mutex_);
    const auto& group = groups_[wait.group];
    std::vector<std::int64_t> missing, silent, present{rank_};
    std::string where;
    for (const auto rank : group.members) {
      if (rank == rank_) continue;
      const auto other = others.find(rank);
      if (other == others.end() || other->second.epoch < epoch) {
        silent.push_back(rank);
        missing.push_back(rank);
      } else if (has_issued(other->second, group.name, wait.number)) {
        present.push_back(rank);
      } else {
        missing.push_back(rank);
        where += "; rank " + std::to_string(rank) + " last came to " + other->second.last;
      }
    }
    std::sort(present.begin(), present.end());
    std::ostringstream text;
    text << (missing.empty() ? "the data" : name_ranks(missing)) << " did not come to " << wait.label.text()
         << " of group " << group.name << " in step " << step_ << " within " << timeout << "; " << name_ranks(present)
         << (present.size() == 1 ? " waits there" : " wait there") << where;
    if (!silent.empty()) text << "; no word from " << name_ranks(silent) << ": stopped, or cut off";
    return text.str();
  }

 private:
  /// Collectives of a group that are remembered. A host runs ahead of its device by as many launches as CUDA's queue
  /// takes, about a thousand.
  static constexpr std::size_t kRecent = 1024;
  static constexpr std::size_t kReported = 16;  ///< of those, told to other ranks at a time

  struct Group {
    std::string name;
    std::vector<std::int64_t> members;
    std::uint64_t count = 0;    ///< collectives issued
    std::vector<Label> recent;  ///< at its number modulo kRecent
  };

  /// Adds to `report` up to kReported collectives of `group` from number `first` on, of those remembered.
  static void tell(RankReport& report, const Group& group, std::uint64_t first) {
    for (auto number = first; number < std::min(group.count, first + kReported); ++number) {
      if (number + kRecent < group.count) continue;
      const auto& label = group.recent[number % kRecent];
      report.issued[{group.name, number}] = {label.hash(), label.text()};
    }
  }

  static bool has_issued(const RankReport& report, const std::string& group, std::uint64_t number) {
    const auto count = report.count.find(group);
    return count != report.count.end() && count->second > number;
  }

  [[noreturn]] void throw_failure(const Label& label) const {
    TORCH_CHECK(false, "rank ", rank_, " stops at ", label.text(), " in step ", step_.load(), ": ", failure_);
  }

  const std::int64_t rank_;
  std::atomic<std::int64_t> step_ = 0;
  mutable DeviceWorks on_device_;  ///< asking it forgets what is done

  mutable std::mutex mutex_;  ///< of everything below
  std::deque<Group> groups_;  ///< a group stays where it is, and its name and members as they are
  std::optional<std::pair<std::size_t, std::uint64_t>> latest_;  ///< group and number of the last collective
  Waits waits_;
  std::uint64_t next_wait_ = 0;
  std::string failure_;  ///< why this rank takes no further part; empty while it does
};

}  // namespace sealift::train
