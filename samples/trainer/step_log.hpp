// SPDX-License-Identifier: Apache-2.0
// What rank 0 says while it trains: a line of log.jsonl per step, and a progress line every few seconds.
// Around the loop of `run.cpp`; the other ranks make none.
// A resumed run adds to log.jsonl, so that the steps before it are kept.
#pragma once

#include "options.hpp"

#include <nlohmann/json.hpp>

#include <c10/util/Exception.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

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
  /// `floor`: the loss that no model can go below. Makes the folder `options.out`.
  StepLog(const Options& options, std::int64_t first_step, double floor)
      : steps_(options.steps), first_step_(first_step), floor_(floor) {
    std::filesystem::create_directories(options.out);
    file_ = open_for_writing(std::filesystem::path(options.out) / "log.jsonl",
                             first_step > 0 ? std::ios::app : std::ios::trunc);
  }

  /// `step` counts from 1.
  void add(std::int64_t step, const StepResult& result) {
    file_ << nlohmann::ordered_json{{"step", step},
                                    {"loss", result.loss},
                                    {"grad_norm", result.gradient_norm},
                                    {"tokens_per_second", result.tokens_per_second}}
          << '\n'
          << std::flush;
    const auto now = Clock::now();
    if (step > first_step_ + 1 && step < steps_ && now - last_line_ <= std::chrono::seconds(2)) return;
    last_line_ = now;
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const double left = elapsed / static_cast<double>(step - first_step_) * static_cast<double>(steps_ - step);
    std::cerr << "step " << step << "/" << steps_ << "  loss " << result.loss << "  floor " << floor_ << "  "
              << static_cast<std::int64_t>(result.tokens_per_second) << " tokens/s  " << static_cast<std::int64_t>(left)
              << " s left\n";
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t steps_, first_step_;
  double floor_;
  std::ofstream file_;
  Clock::time_point start_ = Clock::now(), last_line_ = start_;
};

}  // namespace sealift::trainer
