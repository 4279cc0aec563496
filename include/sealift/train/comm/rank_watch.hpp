// SPDX-License-Identifier: Apache-2.0
// The thread that watches whether all ranks do the same, so that ranks that disagree, fail or stop end in one clear
// message on every rank instead of a hang.
// Collectives say in `issued_collectives` what they issue and wait for; when one waits long, the watch compares that
// with the reports of other ranks from `watch_store`.
// A thread of its own, since a Gloo wait that timed out may not be waited for again, and a store whose host was stopped
// blocks its clients.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/engines.hpp>
#include <sealift/train/comm/issued_collectives.hpp>
#include <sealift/train/comm/watch_store.hpp>

#include <condition_variable>
#include <memory>
#include <set>
#include <thread>

namespace sealift::train {

/// One per rank of a world of several; a rank alone has none.
class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::milliseconds;

  RankWatch(Store store, std::int64_t rank, std::int64_t size, milliseconds timeout, at::Device device);

  /// Starts the thread; it ends when the last owner lets go. `device`: the rank's.
  static std::shared_ptr<RankWatch> start(const Store& store, std::int64_t rank, std::int64_t size,
                                          milliseconds timeout, at::Device device = at::kCPU);

  /// How long a rank that does not answer is waited for.
  milliseconds timeout() const { return timeout_; }

  /// What this rank has issued and waits for.
  IssuedCollectives& issued() { return issued_; }

  /// The engines whose collectives run on the device; a failure aborts them, so that streams that wait go on.
  DeviceEngines& engines() { return engines_; }

  /// Tells all other ranks why this one ends: a program calls it where it catches. Does nothing for an error that came
  /// from the watch itself. Returns when the others can read it, after a second at the latest.
  void report_failure(const std::string& text);

  /// Ranks were found to disagree: tells the others and throws.
  [[noreturn]] void disagree(const Label& label, const std::string& text);

  /// The wait for `label` ended without success: throws what ended it, or that it timed out and the watch hangs.
  [[noreturn]] void give_up(const Label& label);

  /// The engine broke with `error` in `label`: finds the cause, for up to two seconds, and throws it.
  [[noreturn]] void broken(const Label& label, const std::string& error);

 private:
  static constexpr auto kPatience = milliseconds(1000);

  void note_broken(const Label& label, const std::string& error);

  void tell_others(const std::string& text);

  std::string seconds() const;

  /// How long a wait may take before it counts as slow.
  milliseconds slice() const { return std::min<milliseconds>(kPatience, timeout_ / 4); }

  std::string store_silent() const;

  void stop();

  void run();

  Clock::time_point next_check();

  bool looks_for_cause() const { return !broken_.empty() && !issued_.has_failed(); }

  /// Whether engines wait to be aborted. The other ranks are told first, since an abort may take long.
  bool must_abort() const { return !aborted_ && (outbox_.empty() || store_gone_) && issued_.has_failed(); }

  /// Ends every wait of this rank with `text`; with `wait`, only if that one has not ended meanwhile.
  bool fail(const std::string& text, std::optional<std::uint64_t> wait = {});

  /// Without a store: long waits fail, since their cause cannot be found.
  void check_alone();

  /// One check; `lock` is open while the store is asked.
  void check(std::unique_lock<std::mutex>& lock);

  /// A rank that begins to wait long begins an epoch; every rank that sees a new epoch reports where it is.
  void compare_with_others(std::unique_lock<std::mutex>& lock);

  /// The reports of the other ranks of the groups that these waits are in.
  RankReports reports_for(const IssuedCollectives::Waits& waits) const;

  /// The engine broke: posts that, and looks for the rank that was the first to fail.
  void find_cause(std::unique_lock<std::mutex>& lock);

  const WatchStore store_;  ///< after the start, only the thread touches it
  IssuedCollectives issued_;
  const std::int64_t size_;
  const milliseconds timeout_;
  const at::Device device_;
  DeviceEngines engines_;
  std::thread thread_;
  // The thread's own:
  std::int64_t reported_epoch_ = 0;  ///< the latest that this rank answered with a report
  std::int64_t begun_epoch_ = 0;     ///< the latest that this rank began: a live rank has answered it
  std::set<std::uint64_t> asked_;    ///< the slow waits that have begun an epoch

  mutable std::mutex mutex_;  ///< of everything below; taken before that of `issued_`
  std::condition_variable changed_;
  std::string outbox_;    ///< a failure to tell to the others
  std::string broken_;    ///< what broke here, while its cause is looked for
  bool aborted_ = false;  ///< the engines
  bool store_gone_ = false;
  bool hangs_ = false;  ///< the thread, in a store that does not answer
  bool stop_ = false, ended_ = false;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/rank_watch_inl.hpp>
#endif
