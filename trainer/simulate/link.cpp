// SPDX-License-Identifier: Apache-2.0
// The link's clock.
// See link.hpp.
// Moments are compared, never sums of differences: what is due at `to` is over exactly then.
#include "trainer/simulate/link.hpp"

#include <algorithm>
#include <limits>

namespace sealift::trainer {

std::size_t Link::issue(std::size_t group, double now, double ready, double bytes) {
  Transfer transfer;
  transfer.group = group;
  transfer.ready = ready;
  transfer.bytes = bytes;
  all_.push_back(transfer);
  open_.push_back(all_.size() - 1);
  advance(now, now);
  return all_.size() - 1;
}

double Link::next_change(double now) const {
  double next = std::numeric_limits<double>::infinity();
  for (const auto number : open_) {
    const auto& each = all_[number];
    if (each.begin >= 0) next = std::min(next, each.due);
    if (each.begin < 0 && each.ready > now) next = std::min(next, each.ready);
  }
  return next;
}

void Link::advance(double now, double to) {
  const auto share = flowing_ > 0 ? rate_ / static_cast<double>(flowing_) : 0;
  for (const auto number : open_) {
    auto& each = all_[number];
    if (each.begin < 0) continue;
    if (each.flows) each.bytes = std::max(0.0, each.bytes - share * (to - now));
    if (each.due > to) continue;
    if (!each.flows && each.bytes > 0) {
      each.flows = true;
    } else {
      each.end = to;
      last_ended_[each.group] = static_cast<std::ptrdiff_t>(number);
    }
  }
  std::erase_if(open_, [this](auto number) { return is_done(number); });
  begin_what_may(to);
  const auto flows = [this](auto number) { return all_[number].flows; };
  flowing_ = static_cast<std::size_t>(std::count_if(open_.begin(), open_.end(), flows));
  for (const auto number : open_) {
    auto& each = all_[number];
    if (each.flows) each.due = to + each.bytes * static_cast<double>(flowing_) / rate_;
  }
}

/// Of each group the first that have not ended, unless one before them is not ready.
void Link::begin_what_may(double now) {
  std::array<std::size_t, 2> in_flight{};
  std::array<std::ptrdiff_t, 2> begun_now{-1, -1};  // the first of each group
  std::array<bool, 2> held_up{};
  for (const auto number : open_) {
    auto& each = all_[number];
    const auto group = each.group;
    held_up[group] = held_up[group] || in_flight[group] == at_once_ || each.ready > now;
    if (held_up[0] && held_up[1]) return;
    if (held_up[group]) continue;
    ++in_flight[group];
    if (each.begin >= 0) continue;
    each.begin = now;
    each.due = now + latency_;
    if (begun_now[group] < 0) begun_now[group] = static_cast<std::ptrdiff_t>(number);
    if (now == each.ready) continue;
    const auto last = last_ended_[group];
    const bool made_room = last >= 0 && all_[static_cast<std::size_t>(last)].end == now;
    (made_room ? each.after : each.with) = made_room ? last : begun_now[group];
  }
}

}  // namespace sealift::trainer
