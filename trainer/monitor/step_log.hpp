// SPDX-License-Identifier: Apache-2.0
// What rank 0 says while it trains: a line of log.jsonl per step, and a progress line every few seconds.
// Around a loop; the other ranks make none.
// A resumed run adds to log.jsonl, so that the steps before it are kept; a line that a kill has cut is not, or it would
// spoil the next one.
#pragma once

#include "trainer/failure.hpp"
#include "trainer/json_numbers.hpp"
#include "trainer/monitor/whole_lines.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

namespace sealift::trainer {

/// What one step computed.
struct StepResult {
  double loss = 0;               ///< mean over the global batch
  double gradient_norm = 0;      ///< before clipping
  double tokens_per_second = 0;  ///< over all ranks
};

inline std::ofstream open_for_writing(const std::filesystem::path& path, std::ios::openmode mode = std::ios::trunc) {
  std::ofstream file(path, std::ios::out | mode);
  TORCH_CHECK(file, "cannot write ", path.string(), "; choose another folder with --out");
  return file;
}

/// A file that lines are added to, and that ends no run: where the disk is full, lines wait until there is room.
class PatientFile {
 public:
  explicit PatientFile(std::filesystem::path path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)) {}
  ~PatientFile() {
    if (file_ >= 0) ::close(file_);
  }
  PatientFile(const PatientFile&) = delete;
  PatientFile& operator=(const PatientFile&) = delete;

  void add(const std::string& line) {
    waiting_ += line;
    while (!waiting_.empty()) {
      const auto count = ::write(file_, waiting_.data(), waiting_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return complain(count == 0 ? ENOSPC : errno);
      waiting_.erase(0, static_cast<std::size_t>(count));
    }
    if (std::exchange(complained_, false)) say("what waited for " + path_.string() + " is written");
  }

 private:
  void complain(int error) {
    if (std::exchange(complained_, true)) return;
    say("cannot write " + path_.string() + ": " + std::strerror(error) +
        "; training goes on, and its lines wait until there is room");
  }

  std::filesystem::path path_;
  int file_;
  std::string waiting_;  ///< what is not written yet
  bool complained_ = false;
};

class StepLog {
 public:
  /// Writes `folder`/log.jsonl and makes the folder. `steps`: of the whole job, of which `first_step` are done.
  /// `beside`: what a progress line says after the loss, as the lowest that there can be.
  StepLog(const std::filesystem::path& folder, std::int64_t steps, std::int64_t first_step, std::string beside = "")
      : steps_(steps), first_step_(first_step), beside_(std::move(beside)) {
    std::filesystem::create_directories(folder);
    const auto path = folder / "log.jsonl";
    open_for_writing(path, first_step > 0 ? std::ios::app : std::ios::trunc);
    end_in_whole_line(path);
    lines_.emplace(path);
  }

  /// `step` counts from 1. `more`: further keys of the line.
  void add(std::int64_t step, const StepResult& result, const nlohmann::ordered_json& more = {}) {
    nlohmann::ordered_json line{{"step", step},
                                {"loss", result.loss},
                                {"grad_norm", result.gradient_norm},
                                {"tokens_per_second", result.tokens_per_second}};
    if (more.is_object()) line.update(more);
    write(line);
    const auto now = Clock::now();
    if (step > first_step_ + 1 && step < steps_ && now - last_line_ <= std::chrono::seconds(2)) return;
    last_line_ = now;
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const double left = elapsed / static_cast<double>(step - first_step_) * static_cast<double>(steps_ - step);
    std::cerr << "step " << step << "/" << steps_ << "  loss " << result.loss << beside_ << "  "
              << static_cast<std::int64_t>(result.tokens_per_second) << " tokens/s  " << static_cast<std::int64_t>(left)
              << " s left\n";
  }

  /// A line beside the steps'.
  void write(const nlohmann::ordered_json& line) {
    lines_->add(with_all_numbers(line).dump() + "\n");
    if (heard_) heard_(line);
  }

  /// `heard` is told of each line that is written.
  void on_line(std::function<void(const nlohmann::ordered_json& line)> heard) { heard_ = std::move(heard); }

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t steps_, first_step_;
  std::string beside_;
  std::optional<PatientFile> lines_;
  std::function<void(const nlohmann::ordered_json& line)> heard_;
  Clock::time_point start_ = Clock::now(), last_line_ = start_;
};

}  // namespace sealift::trainer
