// SPDX-License-Identifier: Apache-2.0
// What rank 0 says while it trains: a line of log.jsonl per step, and a progress line every few seconds.
// Around a loop; the other ranks make none.
// A resumed run adds to log.jsonl, so that the steps before it are kept.
#pragma once

#include "trainer/json_numbers.hpp"

#include <c10/util/Exception.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

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

class StepLog {
 public:
  /// Writes `folder`/log.jsonl and makes the folder. `steps`: of the whole job, of which `first_step` are done.
  /// `beside`: what a progress line says after the loss, as the lowest that there can be.
  StepLog(const std::filesystem::path& folder, std::int64_t steps, std::int64_t first_step, std::string beside = "")
      : steps_(steps), first_step_(first_step), beside_(std::move(beside)) {
    std::filesystem::create_directories(folder);
    file_ = open_for_writing(folder / "log.jsonl", first_step > 0 ? std::ios::app : std::ios::trunc);
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

  /// A line that is no step's.
  void write(const nlohmann::ordered_json& line) { file_ << with_all_numbers(line) << '\n' << std::flush; }

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t steps_, first_step_;
  std::string beside_;
  std::ofstream file_;
  Clock::time_point start_ = Clock::now(), last_line_ = start_;
};

}  // namespace sealift::trainer
