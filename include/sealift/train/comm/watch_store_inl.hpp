// SPDX-License-Identifier: Apache-2.0
// The bodies of watch_store.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/watch_store.hpp>

#include <sstream>

namespace sealift::train {

SEALIFT_BODY std::string write_report(const RankReport& report) {
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

SEALIFT_BODY RankReport read_report(const std::string& text) {
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

SEALIFT_BODY std::optional<RankReport> WatchStore::report_of(std::int64_t rank) const {
  const auto key = "report/" + std::to_string(rank);
  return store_->check({key}) ? std::optional(read_report(store_->get_to_str(key))) : std::nullopt;
}

SEALIFT_BODY std::int64_t WatchStore::post_failure(Failure kind, const std::string& text) const {
  store_->set("failure/" + std::to_string(rank_), static_cast<char>(kind) + text);
  return begin_epoch();
}

SEALIFT_BODY WatchStore::Failures WatchStore::failures() const {
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

}  // namespace sealift::train
