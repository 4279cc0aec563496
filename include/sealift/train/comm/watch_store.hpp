// SPDX-License-Identifier: Apache-2.0
// How the watches of a world talk through the store: an epoch that asks every rank for a report, reports, and failures.
// Between `rank_watch`, whose thread is the only one that calls it, and c10d's store; any call may block or throw.
// Keys: `epoch` (a counter), `report/RANK` and `failure/RANK` (the latest of that rank).
#pragma once

#include <sealift/train/comm/rank_report.hpp>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <sstream>
#include <vector>

namespace sealift::train {

using Store = c10::intrusive_ptr<c10d::Store>;

/// A report as lines of tab-separated fields, the epoch first.
inline std::string write_report(const RankReport& report) {
  std::ostringstream out;
  out << report.epoch << "\n";
  if (report.waits) out << "waits\t" << report.waits->first << "\t" << report.waits->second << "\n";
  out << "last\t\t0\t\t" << report.last << "\n";
  for (const auto& [group, count] : report.count) out << "count\t" << group << "\t" << count << "\n";
  for (const auto& [place, issued] : report.issued) {
    out << "issued\t" << place.first << "\t" << place.second << "\t" << issued.hash << "\t" << issued.text << "\n";
  }
  return out.str();
}

/// The reverse of `write_report`.
inline RankReport read_report(const std::string& text) {
  std::istringstream lines(text);
  RankReport report;
  std::string line;
  std::getline(lines, line);
  report.epoch = std::stoll(line);
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string kind, group, number, hash, label;
    std::getline(fields, kind, '\t');
    std::getline(fields, group, '\t');
    std::getline(fields, number, '\t');
    std::getline(fields, hash, '\t');
    std::getline(fields, label);
    const auto value = std::stoull(number);
    if (kind == "waits") report.waits = {group, value};
    if (kind == "last") report.last = label;
    if (kind == "count") report.count[group] = value;
    if (kind == "issued") report.issued[{group, value}] = {std::stoull(hash), label};
  }
  return report;
}

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
  std::optional<RankReport> report_of(std::int64_t rank) const {
    const auto key = "report/" + std::to_string(rank);
    return store_->check({key}) ? std::optional(read_report(store_->get_to_str(key))) : std::nullopt;
  }

  /// Whether a failure explains others, or is what a rank saw of another's.
  enum class Failure : char { Cause = 'C', Symptom = 'S' };

  /// Tells all ranks of a failure of this one; returns the epoch that it begins.
  std::int64_t post_failure(Failure kind, const std::string& text) const {
    store_->set("failure/" + std::to_string(rank_), static_cast<char>(kind) + text);
    return begin_epoch();
  }

  /// What the other ranks posted.
  struct Failures {
    std::string cause;                 ///< of the lowest rank that posted one; empty without one
    std::vector<std::int64_t> silent;  ///< ranks that posted nothing, if there is no cause
  };
  Failures failures() const {
    Failures found;
    for (std::int64_t rank = 0; rank < size_; ++rank) {
      const auto key = "failure/" + std::to_string(rank);
      if (rank == rank_) continue;
      if (!store_->check({key})) {
        found.silent.push_back(rank);
      } else if (const auto text = store_->get_to_str(key); text.starts_with(static_cast<char>(Failure::Cause))) {
        return {text.substr(1), {}};
      }
    }
    return found;
  }

 private:
  Store store_;
  std::int64_t rank_, size_;
};

}  // namespace sealift::train
