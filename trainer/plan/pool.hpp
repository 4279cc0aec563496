// SPDX-License-Identifier: Apache-2.0
// The engine's pool for flats on the host, in numbers: what one unit frees, the next one of that size takes.
// Beside tape; memory takes flats from it. On other devices there is none.
// flat/buffer_pool.hpp's rule, step by step, since what it keeps beside is up to a unit or two.
#pragma once

#include "trainer/plan/tape.hpp"

#include <algorithm>
#include <deque>

namespace sealift::trainer::plan {

class Pool {
 public:
  Pool(Meter& meter, bool keeps) : meter_(&meter), keeps_(keeps) {}

  void take(Part part, std::int64_t bytes) {
    out_ += bytes;
    peak_ = std::max(peak_, out_);
    const auto fits = std::find(kept_.begin(), kept_.end(), bytes);
    if (fits != kept_.end()) {
      meter_->remove(Part::Slack, bytes);
      kept_bytes_ -= bytes;
      kept_.erase(fits);
    }
    trim();
    meter_->add(part, bytes);
  }

  void give(Part part, std::int64_t bytes) {
    meter_->remove(part, bytes);
    out_ -= bytes;
    if (!keeps_) return;
    meter_->add(Part::Slack, bytes);
    kept_bytes_ += bytes;
    kept_.push_back(bytes);
    trim();
  }

  void release_kept() {
    peak_ = out_;
    trim();
  }

 private:
  void trim() {
    while (!kept_.empty() && out_ + kept_bytes_ > peak_) {
      meter_->remove(Part::Slack, kept_.front());
      kept_bytes_ -= kept_.front();
      kept_.pop_front();
    }
  }

  Meter* meter_;
  bool keeps_;
  std::deque<std::int64_t> kept_;
  std::int64_t kept_bytes_ = 0, out_ = 0, peak_ = 0;
};

}  // namespace sealift::trainer::plan
