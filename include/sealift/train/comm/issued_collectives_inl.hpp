// SPDX-License-Identifier: Apache-2.0
// The bodies of issued_collectives.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/issued_collectives.hpp>

#include <algorithm>

namespace sealift::train {

SEALIFT_BODY std::size_t IssuedCollectives::add_group(std::string name, std::vector<std::int64_t> members) {
  const std::lock_guard lock(mutex_);
  groups_.push_back({std::move(name), std::move(members), 0, {}});
  return groups_.size() - 1;
}

SEALIFT_BODY const std::vector<std::int64_t>& IssuedCollectives::members(std::size_t group) const {
  const std::lock_guard lock(mutex_);
  return groups_[group].members;
}

SEALIFT_BODY std::uint64_t IssuedCollectives::issue(std::size_t group, const Label& label) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw_failure(label);
  auto& noted = groups_[group];
  noted.recent.size() < kRecent ? noted.recent.push_back(label)
                                : static_cast<void>(noted.recent[noted.count % kRecent] = label);
  latest_ = {group, noted.count};
  return noted.count++;
}

SEALIFT_BODY IssuedCollectives::Waiting::Waiting(IssuedCollectives& issued, const Label& label, std::size_t group,
                                                 std::uint64_t number, const Works* works)
    : issued_(issued) {
  const std::lock_guard lock(issued_.mutex_);
  if (!issued_.failure_.empty()) issued_.throw_failure(label);
  id_ = issued_.next_wait_++;
  issued_.waits_[id_] = {group, number, label, Clock::now(), works};
}

SEALIFT_BODY IssuedCollectives::Waiting::~Waiting() {
  const std::lock_guard lock(issued_.mutex_);
  issued_.waits_.erase(id_);
}

SEALIFT_BODY void IssuedCollectives::launch(std::size_t group, std::uint64_t number, const Label& label,
                                            c10::intrusive_ptr<c10d::Work> work, std::optional<c10::Event> inputs) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_wait_++;
  }
  on_device_.add(group, {id, number, label, std::move(work), std::move(inputs), {}});
}

SEALIFT_BODY IssuedCollectives::Waits IssuedCollectives::waits() const {
  Waits all;
  on_device_.waits([&](std::size_t group, const DeviceWorks::Running& running) {
    all[running.id] = {group, running.number, running.label, *running.since, nullptr};
  });
  const std::lock_guard lock(mutex_);
  all.insert(waits_.begin(), waits_.end());
  return all;
}

SEALIFT_BODY bool IssuedCollectives::has_failed() const {
  const std::lock_guard lock(mutex_);
  return !failure_.empty();
}

SEALIFT_BODY bool IssuedCollectives::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return false;
  failure_ = reason;
  return true;
}

SEALIFT_BODY bool IssuedCollectives::fail_and_abort(const std::string& reason, std::optional<std::uint64_t> wait) {
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

SEALIFT_BODY void IssuedCollectives::stop_at(const Label& label) const {
  const std::lock_guard lock(mutex_);
  throw_failure(label);
}

SEALIFT_BODY void IssuedCollectives::check(const Label& label) const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw_failure(label);
}

SEALIFT_BODY RankReport IssuedCollectives::report(std::int64_t epoch, const Waits& slow) const {
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

SEALIFT_BODY std::string IssuedCollectives::disagreement(const Wait& wait, const RankReports& others) const {
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

SEALIFT_BODY std::string IssuedCollectives::absence(const Wait& wait, const RankReports& others, std::int64_t epoch,
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

SEALIFT_BODY void IssuedCollectives::tell(RankReport& report, const Group& group, std::uint64_t first) {
  for (auto number = first; number < std::min(group.count, first + kReported); ++number) {
    if (number + kRecent < group.count) continue;
    const auto& label = group.recent[number % kRecent];
    report.issued[{group.name, number}] = {label.hash(), label.text()};
  }
}

SEALIFT_BODY bool IssuedCollectives::has_issued(const RankReport& report, const std::string& group,
                                                std::uint64_t number) {
  const auto count = report.count.find(group);
  return count != report.count.end() && count->second > number;
}

SEALIFT_BODY void IssuedCollectives::throw_failure(const Label& label) const {
  TORCH_CHECK(false, "rank ", rank_, " stops at ", label.text(), " in step ", step_.load(), ": ", failure_);
}

}  // namespace sealift::train
