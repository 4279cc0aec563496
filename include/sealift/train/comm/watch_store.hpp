// SPDX-License-Identifier: Apache-2.0
// How the watches of a world talk through the store: an epoch that asks every rank for a report, reports, and failures.
// Between `rank_watch`, whose thread is the only one that calls it, and c10d's store; any call may block or throw.
// Keys: `epoch` (a counter), `report/RANK` and `failure/RANK` (the latest of that rank).
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/rank_report.hpp>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <vector>

namespace sealift::train {

using Store = c10::intrusive_ptr<c10d::Store>;

/// A report as lines of tab-separated fields, the epoch first.
std::string write_report(const RankReport& report);

/// The reverse of `write_report`.
RankReport read_report(const std::string& text);

/// The store as the watch of one rank uses it.
class WatchStore {
 public:
  WatchStore(Store store, std::int64_t rank, std::int64_t size) : store_(std::move(store)), rank_(rank), size_(size) {}

  /// The epoch that is current.
  std::int64_t epoch() const { return store_->add("epoch", 0); }

  /// Begins a new epoch, which every live rank answers with a report; returns it.
  std::int64_t begin_epoch() const { return store_->add("epoch", 1); }

  void post(const RankReport& report) const { store_->set("report/" + std::to_string(rank_), write_report(report)); }

  /// The latest report of `rank`; nothing when it made none.
  std::optional<RankReport> report_of(std::int64_t rank) const;

  /// Whether a failure explains others, or is what a rank saw of another's.
  enum class Failure : char { Cause = 'C', Symptom = 'S' };

  /// Tells all ranks of a failure of this one; returns the epoch that it begins.
  std::int64_t post_failure(Failure kind, const std::string& text) const;

  /// What the other ranks posted.
  struct Failures {
    std::string cause;                 ///< of the lowest rank that posted one; empty without one
    std::vector<std::int64_t> silent;  ///< ranks that posted nothing, if there is no cause
  };
  Failures failures() const;

 private:
  Store store_;
  std::int64_t rank_, size_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/watch_store_inl.hpp>
#endif
