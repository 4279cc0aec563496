// SPDX-License-Identifier: Apache-2.0
// What a person sees while a verb works: notes, warnings, and how far it is. Data goes to stdout elsewhere; this is
// stderr. On a terminal one line is redrawn, elsewhere a line is added every few seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace sealift::packager {

// "1.2 GB"; decimal, as discs are sold.
std::string human_size(std::uint64_t bytes);

// Safe from several threads.
class Console {
 public:
  explicit Console(std::FILE* stream = stderr);  // nullptr: silent

  void note(std::string_view text) { line(text); }
  void warn(std::string_view text) { line("warning: " + std::string(text)); }

 private:
  friend class Progress;
  void line(std::string_view text);
  void redraw(std::string_view text);  // terminal only

  std::FILE* stream_;
  bool terminal_;
  std::size_t drawn_ = 0;  // columns of the line that stands there
  std::mutex guard_;
};

// Bytes done of bytes expected (0: unknown), with rate and time left. Safe from several threads.
class Progress {
 public:
  Progress(Console& console, std::string label, std::uint64_t total);
  void add(std::uint64_t bytes);
  // Bytes that were there before we began: counted, but not in the rate.
  void skip(std::uint64_t bytes);
  void take_back(std::uint64_t bytes);
  // The closing line, said even when nothing was drawn before.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void show();
  std::string text(Clock::time_point now) const;

  Console& console_;
  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::uint64_t skipped_ = 0;
  Clock::time_point begin_;
  Clock::time_point shown_;
  std::mutex guard_;
};

}  // namespace sealift::packager
