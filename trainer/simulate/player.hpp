// SPDX-License-Identifier: Apache-2.0
// The stage on which a step is played: a thread that computes and waits, and links and a bus that go on meanwhile.
// step_time.cpp tells it what the engine does, in the engine's order; it knows no units.
// Each event remembers what let it begin, so that the chain that determines the end can be followed back.
#pragma once

#include "trainer/simulate/link.hpp"
#include "trainer/simulate/step_bounds.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace sealift::trainer {

class Player {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// A collective: its event and where it travels.
  struct Transfer {
    std::size_t event = kNone, link = 0, number = 0;
    explicit operator bool() const { return event != kNone; }
  };

  explicit Player(const Rates& rates)
      : rates_(rates),
        links_{Link(rates.link_bytes_per_second, rates.link_latency_seconds, at_once()),
               Link(rates.copies_bytes_per_second, rates.copies_latency_seconds, at_once())} {}

  double now() const { return now_; }

  /// Computes for `seconds` of a rank that has its cores for itself.
  void compute(StepEvent event, double seconds, double& sum) {
    if (seconds <= 0) return;
    event.begin = now_;
    while (seconds > 0) {
      const bool beside =
          std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link.moves_bytes(); });
      const auto speed = beside ? 1 - rates_.computing_lost_to_transfers : 1;
      const auto over = speed > 0 ? now_ + seconds / speed : std::numeric_limits<double>::infinity();
      const auto to = std::min(over, next_change());
      seconds = to == over ? 0 : std::max(0.0, seconds - speed * (to - now_));
      move(to);
    }
    event.end = now_;
    sum += now_ - event.begin;
    cause_ = add(event, cause_);
  }

  Transfer issue(const StepEvent& event, std::int64_t bytes, std::size_t bus = kNone) {
    const bool own = event.stream == Stream::Copies && rates_.copies_bytes_per_second > 0;
    if (bytes > 0 && !own) needed(rates_.link_bytes_per_second, "link_bytes_per_second");
    Transfer transfer{.link = own ? 1U : 0U};
    const auto ready = bus == kNone ? now_ : std::max(now_, events_[bus].end);
    transfer.event = add(event, bus == kNone ? cause_ : bus);
    transfer.number =
        links_[transfer.link].issue(event.stream == Stream::Copies ? 1U : 0U, now_, ready, static_cast<double>(bytes));
    auto& of_link = of_links_[transfer.link];
    of_link.resize(transfer.number + 1, kNone);
    of_link[transfer.number] = transfer.event;
    return transfer;
  }

  /// Waits for it; the part of the wait for which its copy over the bus had not come goes to `for_bus`.
  void wait(const Transfer& transfer, StepEvent event, double& sum, double& for_bus) {
    event.begin = now_;
    const auto& link = links_[transfer.link];
    const auto ready = link[transfer.number].ready;
    while (!link.is_done(transfer.number)) move(next_change());
    if (now_ > event.begin) {
      const auto bus = std::clamp(ready - event.begin, 0.0, now_ - event.begin);
      for_bus += bus;
      sum += now_ - event.begin - bus;
      event.end = now_;
      add(event, kNone);
      cause_ = transfer.event;
    }
  }

  /// Copies over the bus once those before it in its direction are done; returns the event.
  std::size_t copy(StepEvent event, std::int64_t bytes) {
    auto& last = last_copy_[event.what == StepActivity::CopyIn ? 0 : 1];
    const bool queued = last != kNone && events_[last].end > now_;
    event.stream = Stream::Bus;
    event.begin = queued ? events_[last].end : now_;
    event.end = event.begin + static_cast<double>(bytes) / needed(rates_.bus_bytes_per_second, "bus_bytes_per_second");
    return last = add(event, queued ? last : cause_);
  }

  void wait_for_copy(std::size_t copy, double& sum) {
    const auto end = events_[copy].end;
    if (end <= now_) return;
    sum += end - now_;
    while (now_ < end) move(std::min(end, next_change()));
    cause_ = copy;
  }

  /// All events, with the links' moments and the chain that determines the end.
  std::vector<StepEvent> events() {
    std::vector<std::size_t> causes = causes_;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      for (std::size_t number = 0; number < of_links_[link].size(); ++number) {
        const auto& transfer = links_[link][number];
        const auto event = of_links_[link][number];
        events_[event].begin = transfer.begin;
        events_[event].end = transfer.end;
        if (transfer.after >= 0) causes[event] = of_links_[link][static_cast<std::size_t>(transfer.after)];
        if (transfer.with >= 0) causes[event] = causes[of_links_[link][static_cast<std::size_t>(transfer.with)]];
      }
    }
    for (auto event = cause_; event != kNone; event = causes[event]) events_[event].critical = true;
    return std::move(events_);
  }

 private:
  std::size_t at_once() const { return static_cast<std::size_t>(rates_.collectives_at_once); }

  double next_change() const { return std::min(links_[0].next_change(now_), links_[1].next_change(now_)); }

  void move(double to) {
    for (auto& link : links_) link.advance(now_, to);
    now_ = to;
  }

  std::size_t add(const StepEvent& event, std::size_t cause) {
    events_.push_back(event);
    causes_.push_back(cause);
    return events_.size() - 1;
  }

  Rates rates_;
  double now_ = 0;
  std::array<Link, 2> links_;                              ///< everybody's, and that of sums over copies
  std::array<std::vector<std::size_t>, 2> of_links_;       ///< events by the links' numbers
  std::array<std::size_t, 2> last_copy_ = {kNone, kNone};  ///< in and out
  std::vector<StepEvent> events_;
  std::vector<std::size_t> causes_;  ///< of each event the one whose end let it begin
  std::size_t cause_ = kNone;        ///< the event whose end is now
};

}  // namespace sealift::trainer
