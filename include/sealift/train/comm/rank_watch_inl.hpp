// SPDX-License-Identifier: Apache-2.0
// The bodies of rank_watch.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/rank_watch.hpp>

namespace sealift::train {

SEALIFT_BODY RankWatch::RankWatch(Store store, std::int64_t rank, std::int64_t size, milliseconds timeout,
                                  at::Device device)
    : store_(std::move(store), rank, size), issued_(rank), size_(size), timeout_(timeout), device_(device) {}

SEALIFT_BODY std::shared_ptr<RankWatch> RankWatch::start(const Store& store, std::int64_t rank, std::int64_t size,
                                                         milliseconds timeout, at::Device device) {
  // A clone has its own connection, so the watch and others never wait for each other.
  auto watch = std::make_shared<RankWatch>(store->clone(), rank, size, timeout, device);
  watch->thread_ = std::thread([watch] { watch->run(); });
  auto* raw = watch.get();
  return {raw, [watch = std::move(watch)](RankWatch*) { watch->stop(); }};
}

SEALIFT_BODY void RankWatch::report_failure(const std::string& text) {
  tell_others(name_ranks({issued_.rank()}) + " failed in step " + std::to_string(issued_.step()) + ": " + text);
}

SEALIFT_BODY void RankWatch::disagree(const Label& label, const std::string& text) {
  tell_others(text);
  issued_.stop_at(label);
}

SEALIFT_BODY void RankWatch::give_up(const Label& label) {
  {
    const std::lock_guard lock(mutex_);
    hangs_ = issued_.fail("it did not end within " + seconds() + store_silent()) || hangs_;
    changed_.notify_all();
  }
  issued_.stop_at(label);
}

SEALIFT_BODY void RankWatch::broken(const Label& label, const std::string& error) {
  {
    std::unique_lock lock(mutex_);
    if (!issued_.has_failed()) {
      note_broken(label, error);
      changed_.notify_all();
      changed_.wait_for(lock, 2 * kPatience, [&] { return issued_.has_failed(); });
      issued_.fail(broken_ + store_silent());
    }
  }
  issued_.stop_at(label);
}

SEALIFT_BODY void RankWatch::note_broken(const Label& label, const std::string& error) {
  if (!broken_.empty()) return;
  broken_ = label.text() + " broke on " + name_ranks({issued_.rank()}) + " in step " + std::to_string(issued_.step()) +
            " (" + error + ")";
}

SEALIFT_BODY void RankWatch::tell_others(const std::string& text) {
  std::unique_lock lock(mutex_);
  if (!issued_.fail(text)) return;  // the others know
  outbox_ = text;
  changed_.notify_all();
  changed_.wait_for(lock, kPatience, [&] { return outbox_.empty() || store_gone_; });
}

SEALIFT_BODY std::string RankWatch::seconds() const {
  std::ostringstream text;
  text << static_cast<double>(timeout_.count()) / 1000 << " s";
  return text.str();
}

SEALIFT_BODY std::string RankWatch::store_silent() const {
  return store_gone_ ? "; the store is gone too: the process that serves it, rank 0 or the launcher, has ended"
                     : "; the store does not answer: the process that serves it, rank 0 or the launcher, is stopped";
}

SEALIFT_BODY void RankWatch::stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
  const bool ended = changed_.wait_for(lock, hangs_ ? milliseconds(0) : kPatience, [&] { return ended_; });
  lock.unlock();
  // A thread that hangs in a store whose host is stopped owns what it touches, so it may be left behind.
  ended ? thread_.join() : thread_.detach();
}

SEALIFT_BODY void RankWatch::run() {
  use_device(device_);
  std::unique_lock lock(mutex_);
  while (!stop_ || !outbox_.empty()) {
    changed_.wait_until(lock, next_check(),
                        [&] { return stop_ || !outbox_.empty() || looks_for_cause() || must_abort(); });
    if (const auto error = issued_.device_error()) note_broken(error->first, error->second);
    try {
      if (!store_gone_) check(lock);
    } catch (const std::exception&) {
      if (!lock.owns_lock()) lock.lock();
      store_gone_ = true;
    }
    if (store_gone_) check_alone();
    if (!must_abort()) continue;
    aborted_ = true;
    lock.unlock();
    engines_.abort();
    lock.lock();
  }
  ended_ = true;
  changed_.notify_all();
}

SEALIFT_BODY RankWatch::Clock::time_point RankWatch::next_check() {
  // A check of a rank that has waited long asks for the reports of all others, so many ranks check less often, but no
  // later than a time-out.
  const auto now = Clock::now();
  auto next = now + slice();
  if (issued_.has_failed()) return next;
  for (const auto& [id, wait] : issued_.waits()) {
    const auto slow = wait.since + slice();
    next = std::min(next, slow > now ? slow : now + std::max(slice() / 4, size_ * milliseconds(2)));
    next = std::min(next, std::max(wait.since + timeout_, now + milliseconds(1)));
  }
  return next;
}

SEALIFT_BODY bool RankWatch::fail(const std::string& text, std::optional<std::uint64_t> wait) {
  const bool stands = issued_.fail_and_abort(text, wait);
  changed_.notify_all();
  return stands;
}

SEALIFT_BODY void RankWatch::check_alone() {
  outbox_.clear();
  changed_.notify_all();
  if (!broken_.empty()) fail(broken_ + store_silent());
  for (const auto& [id, wait] : issued_.waits()) {
    if (Clock::now() - wait.since <= slice()) continue;
    fail("waiting for " + wait.label.text() + " in step " + std::to_string(issued_.step()) + store_silent(), id);
  }
}

SEALIFT_BODY void RankWatch::check(std::unique_lock<std::mutex>& lock) {
  if (!outbox_.empty()) {
    const auto text = outbox_;
    lock.unlock();
    store_.post_failure(WatchStore::Failure::Cause, text);
    lock.lock();
    outbox_.clear();
    changed_.notify_all();
  } else if (looks_for_cause()) {
    find_cause(lock);
  } else if (!issued_.has_failed()) {
    compare_with_others(lock);
  }
}

SEALIFT_BODY void RankWatch::compare_with_others(std::unique_lock<std::mutex>& lock) {
  IssuedCollectives::Waits slow;
  for (const auto& [id, wait] : issued_.waits()) {
    if (Clock::now() - wait.since >= slice()) slow[id] = wait;
  }
  const bool is_new =
      std::any_of(slow.begin(), slow.end(), [&](const auto& each) { return !asked_.contains(each.first); });
  asked_.clear();
  for (const auto& [id, wait] : slow) asked_.insert(id);
  lock.unlock();
  const auto epoch = is_new ? store_.begin_epoch() : store_.epoch();
  if (is_new) begun_epoch_ = epoch;
  std::string cause;
  RankReports reports;
  if (epoch != reported_epoch_ || !slow.empty()) {
    reported_epoch_ = epoch;
    cause = store_.failures().cause;
    store_.post(issued_.report(epoch, slow));
    reports = reports_for(slow);
  }
  lock.lock();
  if (!cause.empty()) {
    fail(cause);
    return;
  }
  for (const auto& [id, wait] : slow) {
    auto text = issued_.disagreement(wait, reports);
    if (text.empty() && Clock::now() - wait.since >= timeout_) {
      text = issued_.absence(wait, reports, begun_epoch_, seconds());
    }
    if (text.empty() || !fail(text, id)) continue;
    outbox_ = text;
    return;
  }
}

SEALIFT_BODY RankReports RankWatch::reports_for(const IssuedCollectives::Waits& waits) const {
  std::set<std::int64_t> awaited;
  for (const auto& [id, wait] : waits) {
    const auto& members = issued_.members(wait.group);
    awaited.insert(members.begin(), members.end());
  }
  awaited.erase(issued_.rank());
  RankReports reports;
  for (const auto rank : awaited) {
    if (auto report = store_.report_of(rank)) reports.emplace(rank, std::move(*report));
  }
  return reports;
}

SEALIFT_BODY void RankWatch::find_cause(std::unique_lock<std::mutex>& lock) {
  const auto mine = broken_;
  lock.unlock();
  const auto epoch = store_.post_failure(WatchStore::Failure::Symptom, mine);
  WatchStore::Failures failures;
  // A live rank that waits for nothing checks once a slice.
  for (const auto until = Clock::now() + kPatience + slice() / 2; Clock::now() < until;) {
    failures = store_.failures();
    if (!failures.cause.empty() || failures.silent.empty()) break;
    std::this_thread::sleep_for(milliseconds(20));
  }
  auto& [cause, silent] = failures;
  if (cause.empty()) {
    cause = mine;
    std::erase_if(silent, [&](std::int64_t rank) {  // it has no failure to post, but answered this rank's epoch
      const auto report = store_.report_of(rank);
      return report && report->epoch >= epoch;
    });
    if (!silent.empty()) cause += "; no word from " + name_ranks(silent) + ": ended without one, killed, or cut off";
    store_.post_failure(WatchStore::Failure::Cause, cause);
  }
  lock.lock();
  fail(cause);
}

}  // namespace sealift::train
