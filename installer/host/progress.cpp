// SPDX-License-Identifier: Apache-2.0
// Prints rarely enough to cost nothing: five times a second on a terminal, every five seconds into a log.
// No colours, so NO_COLOR has nothing to switch off.
#include "installer/host/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sealift::installer {

std::string human_bytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

Progress::Style Progress::style_of_stderr() {
  return ::isatty(STDERR_FILENO) != 0 ? Style::Terminal : Style::Lines;
}

void Progress::say(const std::string& text) {
  if (style_ != Style::Silent) std::fprintf(stderr, "%s\n", text.c_str());
}

void Progress::begin(std::string label, std::uint64_t total) {
  const std::lock_guard lock(guard_);
  label_ = std::move(label);
  total_ = total;
  done_ = 0;
  started_ = printed_ = Clock::now();
}

void Progress::add(std::uint64_t bytes) {
  const std::lock_guard lock(guard_);
  done_ += bytes;
  const auto now = Clock::now();
  const auto pause = style_ == Style::Terminal ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000);
  if (style_ == Style::Silent || now - printed_ < pause) return;
  print(now);
}

void Progress::end() {
  const std::lock_guard lock(guard_);
  if (style_ == Style::Silent) return;
  print(Clock::now());
  if (style_ == Style::Terminal) std::fputc('\n', stderr);
}

void Progress::print(Clock::time_point now) {
  printed_ = now;
  const double seconds = std::max(0.001, std::chrono::duration<double>(now - started_).count());
  const double rate = static_cast<double>(done_) / seconds;
  const std::uint64_t left = total_ > done_ ? total_ - done_ : 0;
  char tail[64];
  if (left > 0 && rate > 0)
    std::snprintf(tail, sizeof tail, "%.0f s left", static_cast<double>(left) / rate);
  else
    std::snprintf(tail, sizeof tail, "%.1f s", seconds);
  const std::string text = label_ + ": " + human_bytes(done_) + " of " + human_bytes(std::max(total_, done_)) + ", " +
                           human_bytes(static_cast<std::uint64_t>(rate)) + "/s, " + tail;
  std::fprintf(stderr, style_ == Style::Terminal ? "\r%s\x1b[K" : "%s\n", text.c_str());
}

}  // namespace sealift::installer
