// SPDX-License-Identifier: Apache-2.0
// What an operator sees while we work, on stderr: bytes, rate and time left; one line that changes on a terminal, a
// line every few seconds elsewhere. Knows nothing of what the bytes are.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace sealift::installer {

std::string human_bytes(std::uint64_t bytes);  // "4.7 GB"

class Progress {
 public:
  enum class Style { Silent, Lines, Terminal };

  static Style style_of_stderr();

  explicit Progress(Style style) : style_(style) {}

  // A step without bytes to count.
  void say(const std::string& text);
  void begin(std::string label, std::uint64_t total);
  void add(std::uint64_t bytes);  // from any thread
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void print(Clock::time_point now);

  const Style style_;
  std::mutex guard_;
  std::string label_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
  Clock::time_point started_;
  Clock::time_point printed_;
};

}  // namespace sealift::installer
