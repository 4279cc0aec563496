// SPDX-License-Identifier: Apache-2.0
// Prints rarely enough to cost nothing: five times a second on a terminal, every five seconds elsewhere; see
// progress.hpp. No colours are used, so NO_COLOR holds by itself.
#include "sealift/bundle/host/progress.hpp"

#include <unistd.h>

#include <algorithm>

#include "bundle/core/foreign_text.hpp"
#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::bundle {

namespace {

std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

std::string in_minutes(std::uint64_t seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu:%02llu", static_cast<unsigned long long>(seconds / 60),
                static_cast<unsigned long long>(seconds % 60));
  return text;
}

}  // namespace

Progress::Progress(std::FILE* stream)
    : stream_(stream), terminal_(stream != nullptr && ::isatty(::fileno(stream)) == 1) {}

// An error that follows begins on a line of its own.
Progress::~Progress() {
  if (drawn_ == 0) return;
  std::fputc('\n', stream_);
  std::fflush(stream_);
}

void Progress::print_line(const std::string& text) {
  if (stream_ == nullptr) return;
  const std::lock_guard lock(guard_);
  clear();
  std::fprintf(stream_, "%s\n", terminal_text(continued(text, 2, 2)).c_str());
  std::fflush(stream_);
}

void Progress::tell(std::string_view text) {
  constexpr std::size_t kColumns = 100;
  if (stream_ == nullptr) return;
  const std::lock_guard lock(guard_);
  const Clock::time_point now = Clock::now();
  if (!terminal_ && now - told_ < std::chrono::seconds(10)) return;
  told_ = now;
  std::string line = terminal_text(std::string(text));
  if (terminal_ && line.size() > kColumns) {
    line.resize(kColumns);
    while (!line.empty() && !is_utf8(line)) line.pop_back();
  }
  draw(line);
}

void Progress::draw(const std::string& line) {
  if (!terminal_) {
    std::fprintf(stream_, "%s\n", line.c_str());
  } else {
    // What stood there may have been longer.
    std::fprintf(stream_, "\r%-*s", static_cast<int>(drawn_), line.c_str());
    drawn_ = line.size();
  }
  std::fflush(stream_);
}

void Progress::begin(std::string label, std::uint64_t total) {
  const std::lock_guard lock(guard_);
  label_ = one_line(label);
  total_ = total;
  done_ = skipped_ = 0;
  begun_ = shown_ = Clock::now();
}

void Progress::add(std::uint64_t bytes) {
  const std::lock_guard lock(guard_);
  done_ += bytes;
  const Clock::time_point now = Clock::now();
  if (now - shown_ >= (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000))) show(now);
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

void Progress::end() {
  if (stream_ == nullptr) return;
  const std::lock_guard lock(guard_);
  const Clock::time_point now = Clock::now();
  clear();
  std::fprintf(stream_, "%s, %s\n", text(now).c_str(),
               in_seconds(std::chrono::duration<double>(now - begun_).count()).c_str());
  std::fflush(stream_);
}

void Progress::show(Clock::time_point now) {
  shown_ = now;
  if (stream_ == nullptr) return;
  std::string line = text(now);
  const double rate = static_cast<double>(done_ - skipped_) / std::chrono::duration<double>(now - begun_).count();
  if (total_ > done_ && rate > 1)
    line += ", " + in_minutes(static_cast<std::uint64_t>(static_cast<double>(total_ - done_) / rate)) + " left";
  draw(line);
}

void Progress::clear() {
  if (drawn_ > 0) std::fprintf(stream_, "\r%*s\r", static_cast<int>(drawn_), "");
  drawn_ = 0;
}

std::string Progress::text(Clock::time_point now) const {
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - begun_).count());
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(done_ - skipped_) / seconds);
  const std::string of = total_ > 0 ? " of " + human_size(std::max(total_, done_)) : "";
  return label_ + ": " + human_size(done_) + of + ", " + human_size(rate) + "/s";
}

}  // namespace sealift::bundle
