// SPDX-License-Identifier: Apache-2.0
// What goes on beside the server while it serves: looks at folders every few seconds, says what became of each bundle,
// and gives the new state to the server and to the scrub. A part of `serve`, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "bundle/core/foreign_text.hpp"
#include "offline_repo/holdings/gaps.hpp"
#include "offline_repo/holdings/holdings.hpp"
#include "offline_repo/holdings/scrub.hpp"
#include "offline_repo/server/server.hpp"

namespace sealift::offline_repo {

// One write per line, so that lines of several threads do not mix.
inline void log_line(std::string line) {
  line = bundle::terminal_text(bundle::continued(line, 2, 2)) + '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

inline void say_warnings(const Held& before, const Held& after) {
  std::set<const BundleContents*> known;
  for (const HeldBundle& one : before) known.insert(one.contents.get());
  for (const HeldBundle& one : after) {
    if (!one.contents || known.contains(one.contents.get())) continue;
    for (const std::string& warning : one.contents->in->warnings()) log_line("warning: " + one.stem() + ": " + warning);
    if (one.contents->in->manifest().base)
      log_line(
          "warning: " + one.stem() +
          ": it is a delta; what it does not carry is not served, unless a bundle that is served beside it has it");
  }
}

// What became of bundles: the ones that are left out always, all of them in a folder that changes.
inline void say_changes(const Held& before, const Held& after, bool all) {
  say_warnings(before, after);
  for (const std::string& line : changes(before, after))
    if (all || line.find(" is left out: ") != line.npos) log_line(line);
  std::set<std::string> said;
  for (const Gap& gap : gaps_of(before)) said.insert(gap.line());
  for (const Gap& gap : gaps_of(after))
    if (!said.contains(gap.line())) log_line("gap: " + gap.line());
}

// Looks at folders every few seconds, and when it is rung; has the scrub read what there is.
class Watch {
 public:
  Watch(Holdings& holdings, Held held, Scrub& scrub, std::chrono::seconds pause)
      : holdings_(holdings), held_(std::move(held)), scrub_(scrub), pause_(pause) {
    scrub_.take(held_);
  }

  // `at_once`: folders need not come to rest.
  void ring(bool at_once) {
    const std::lock_guard lock(guard_);
    rung_ = true;
    at_once_ = at_once_ || at_once;
    bell_.notify_all();
  }
  void run(const std::stop_token& stop, Server& server) {
    for (;;) {
      const bool at_once = wait(stop);
      if (stop.stop_requested()) return;
      try {
        take(holdings_.look(at_once), server);
        fault_.clear();
      } catch (const std::exception& error) {
        if (fault_ != error.what()) log_line("fault: what is served stays as it was: " + std::string(error.what()));
        fault_ = error.what();
      }
    }
  }

 private:
  bool wait(const std::stop_token& stop) {
    std::unique_lock lock(guard_);
    bell_.wait_for(lock, stop, pause_, [this] { return rung_; });
    rung_ = false;
    return std::exchange(at_once_, false);
  }
  void take(std::optional<Held> held, Server& server) {
    if (!held) return;
    say_changes(held_, *held, true);
    held_ = *held;
    scrub_.take(held_);
    server.show(*std::move(held));
  }

  Holdings& holdings_;
  Held held_;
  Scrub& scrub_;
  const std::chrono::seconds pause_;
  std::string fault_;  // that was said last
  std::mutex guard_;
  std::condition_variable_any bell_;
  bool rung_ = false, at_once_ = false;
};

}  // namespace sealift::offline_repo
