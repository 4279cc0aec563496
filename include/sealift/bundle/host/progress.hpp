// SPDX-License-Identifier: Apache-2.0
// What an operator sees while a tool works: notes, warnings, and how far it is, with bytes, rate and time left. On a
// terminal one line is redrawn, elsewhere a line is added every few seconds. Goes to stderr: stdout is for data.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace sealift::bundle {

// Safe from several threads. One count at a time.
class Progress {
 public:
  explicit Progress(std::FILE* stream = stderr);  // nullptr: silent
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void note(std::string_view text) { print_line(std::string(text)); }
  // Of work that counts no bytes, as often as anybody likes: on a terminal it is redrawn, elsewhere it becomes a line
  // every ten seconds.
  void tell(std::string_view text);
  void warn(std::string_view text) { print_line("warning: " + std::string(text)); }

  // Counts bytes from here on, of `total`; 0: nobody knows how many.
  void begin(std::string label, std::uint64_t total);
  void add(std::uint64_t bytes);
  void skip(std::uint64_t bytes);  // there before we began: counted, but not in the rate
  void take_back(std::uint64_t bytes);
  // The closing line, printed even when none was before.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void print_line(const std::string& text);
  void show(Clock::time_point now);
  void draw(const std::string& line);
  void clear();
  std::string text(Clock::time_point now) const;

  std::FILE* const stream_;
  const bool terminal_;
  std::mutex guard_;
  std::string label_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t skipped_ = 0;
  std::size_t drawn_ = 0;  // columns of the line that is redrawn
  Clock::time_point begun_;
  Clock::time_point shown_;
  Clock::time_point told_;
};

}  // namespace sealift::bundle
