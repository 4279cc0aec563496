// SPDX-License-Identifier: Apache-2.0
// What one rank has issued, what it waits for, and why it stopped: the state that a rank's threads share.
// `collectives` writes it on the thread that trains, `rank_watch` reads it on a thread of its own; reports of other
// ranks are compared with it here.
// A small value with a mutex of its own, so that a collective pays for two short locks and nothing else.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/device_works.hpp>
#include <sealift/train/comm/rank_report.hpp>

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
  std::size_t add_group(std::string name, std::vector<std::int64_t> members);

  const std::vector<std::int64_t>& members(std::size_t group) const;

  /// Notes that this rank issues the next collective of `group` and returns its number, from 0. Throws after a failure.
  std::uint64_t issue(std::size_t group, const Label& label);

  /// While it lives, this rank waits for a collective.
  class Waiting {
   public:
    /// `works` stay alive as long as this does. Throws after a failure.
    Waiting(IssuedCollectives& issued, const Label& label, std::size_t group, std::uint64_t number, const Works* works);
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

   private:
    IssuedCollectives& issued_;
    std::uint64_t id_;
  };

  /// Notes that `work` runs on a device, where streams wait for it and no thread does; `inputs` is an event of the
  /// stream that makes its inputs, where there is one.
  void launch(std::size_t group, std::uint64_t number, const Label& label, c10::intrusive_ptr<c10d::Work> work,
              std::optional<c10::Event> inputs);

  /// The waits of this rank's threads, and of its device: there the oldest collective of each group.
  Waits waits() const;

  /// The first collective that broke on the device, and what its engine said.
  std::optional<std::pair<Label, std::string>> device_error() const { return on_device_.error(); }

  bool has_failed() const;

  /// Ends this rank's part: every later call throws `reason`. Whether it does, or an earlier reason stands.
  bool fail(const std::string& reason);

  /// As `fail`, and aborts what this rank waits for. With `wait`, only if that wait has not ended meanwhile.
  bool fail_and_abort(const std::string& reason, std::optional<std::uint64_t> wait = {});

  /// Throws what ended this rank's part in `label`.
  [[noreturn]] void stop_at(const Label& label) const;

  /// Throws after a failure what ended this rank's part in `label`.
  void check(const Label& label) const;

  /// This rank's report, with the latest collectives of each group and those from what it has waited for as `slow`.
  RankReport report(std::int64_t epoch, const Waits& slow) const;

  /// Names two ranks that issued different collectives, or that wait for each other; empty when there are none.
  std::string disagreement(const Wait& wait, const RankReports& others) const;

  /// Names the ranks that did not issue what this rank has waited for as long as `timeout`. A report older than
  /// `epoch`, the latest that this rank began, counts as none.
  std::string absence(const Wait& wait, const RankReports& others, std::int64_t epoch,
                      const std::string& timeout) const;

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
  static void tell(RankReport& report, const Group& group, std::uint64_t first);

  static bool has_issued(const RankReport& report, const std::string& group, std::uint64_t number);

  [[noreturn]] void throw_failure(const Label& label) const;

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

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/issued_collectives_inl.hpp>
#endif
