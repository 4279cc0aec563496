// SPDX-License-Identifier: Apache-2.0
// Draws notes and progress; see console.hpp. No colours are used, so NO_COLOR holds by itself.
#include "packager/host/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace sealift::packager {

std::string human_size(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Console::Console(std::FILE* stream)
    : stream_(stream), terminal_(stream != nullptr && ::isatty(::fileno(stream)) == 1) {}

void Console::line(std::string_view text) {
  if (stream_ == nullptr) return;
  const std::lock_guard lock(guard_);
  if (drawn_ > 0) fmt::print(stream_, "\r{:{}}\r", "", drawn_);
  drawn_ = 0;
  fmt::print(stream_, "{}\n", text);
  std::fflush(stream_);
}

void Console::redraw(std::string_view text) {
  const std::lock_guard lock(guard_);
  fmt::print(stream_, "\r{:{}}", text, drawn_);
  drawn_ = text.size();
  std::fflush(stream_);
}

Progress::Progress(Console& console, std::string label, std::uint64_t total)
    : console_(console), label_(std::move(label)), total_(total), begin_(Clock::now()), shown_(begin_) {}

void Progress::add(std::uint64_t bytes) {
  const std::lock_guard lock(guard_);
  done_ += bytes;
  show();
}

void Progress::skip(std::uint64_t bytes) {
  const std::lock_guard lock(guard_);
  done_ += bytes;
  skipped_ += bytes;
}

void Progress::take_back(std::uint64_t bytes) {
  const std::lock_guard lock(guard_);
  done_ -= std::min(done_, bytes);
  skipped_ = std::min(skipped_, done_);
}

void Progress::show() {
  const Clock::time_point now = Clock::now();
  const auto pause = console_.terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5);
  if (console_.stream_ == nullptr || now - shown_ < pause) return;
  shown_ = now;
  if (console_.terminal_)
    console_.redraw(text(now));
  else
    console_.line(text(now));
}

std::string Progress::text(Clock::time_point now) const {
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - begin_).count());
  const double rate = static_cast<double>(done_ - skipped_) / seconds;
  std::string out = label_ + "  " + human_size(done_);
  if (total_ > 0) out += " of " + human_size(total_);
  out += "  " + human_size(static_cast<std::uint64_t>(rate)) + "/s";
  if (total_ > done_ && rate > 1) {
    const auto left = static_cast<std::uint64_t>(static_cast<double>(total_ - done_) / rate);
    out += fmt::format("  {}:{:02} left", left / 60, left % 60);
  }
  return out;
}

void Progress::finish() {
  const std::lock_guard lock(guard_);
  const Clock::time_point now = Clock::now();
  console_.line(text(now) + fmt::format("  {:.1f} s", std::chrono::duration<double>(now - begin_).count()));
}

}  // namespace sealift::packager
