// SPDX-License-Identifier: Apache-2.0
// The comparison of loss curves.
// See check.hpp. A number that is missing or not finite is a bad result, never one that agrees.
// Differences are relative to the first file, which so is the reference (one process).
#include "trainer/verification/check.hpp"

#include "trainer/json_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace sealift::trainer {
namespace {

std::string name_of(const nlohmann::json& result) {
  return result.at("parallel_method").get<std::string>() + " x" + std::to_string(result.at("world_size").get<int>());
}

std::vector<double> losses_of(const nlohmann::json& result) {
  std::vector<double> losses;
  for (const auto& loss : result.at("losses")) losses.push_back(number_or_nan(loss));
  return losses;
}

}  // namespace

CheckReport check(const std::vector<nlohmann::json>& results, double tolerance, double floor_factor) {
  if (results.empty()) throw std::invalid_argument("no results to check");
  CheckReport report;
  const auto& first = results.front();
  const auto reference = losses_of(first);
  report.floor = first.at("entropy_floor").get<double>();
  for (const auto& result : results) {
    const auto name = name_of(result);
    const auto losses = losses_of(result);
    if (result.at("configuration") != first.at("configuration") || losses.size() != reference.size() ||
        losses.empty()) {
      throw std::invalid_argument(name + " is another job than " + name_of(first) +
                                  ": configuration or number of losses differ; run both with the same settings");
    }
    for (std::size_t step = 0; step < losses.size(); ++step) {
      const double apart = std::abs(losses[step] - reference[step]) / std::abs(reference[step]);
      const double difference = std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity();
      report.max_relative_difference = std::max(report.max_relative_difference, difference);
      if (!(difference <= tolerance)) {
        std::ostringstream text;
        text.precision(10);
        text << name << " differs from " << name_of(first) << " in step " << step + 1 << ": loss " << losses[step]
             << ", expected " << reference[step] << " within " << tolerance << " relative, got " << difference;
        report.problems.push_back(text.str());
        break;
      }
    }
    // The worst, which NaN is.
    if (std::isnan(losses.back()) || losses.back() > report.final_loss) report.final_loss = losses.back();
    if (!(losses.back() <= floor_factor * report.floor && losses.back() >= 0.9 * report.floor)) {
      std::ostringstream text;
      text << name << " ended at a loss of " << losses.back() << " nats; expected 0.9 to " << floor_factor
           << " times the entropy of the data, " << report.floor;
      report.problems.push_back(text.str());
    }
  }
  // Doubles hold 16 digits; more cannot be claimed.
  report.digits = std::clamp(-std::log10(report.max_relative_difference), 0.0, 16.0);
  return report;
}

std::vector<nlohmann::json> read_results(const std::vector<std::string>& paths) {
  std::vector<nlohmann::json> results;
  for (const auto& path : paths) {
    std::ifstream file(path);
    if (!file) throw std::invalid_argument("cannot read " + path + "; give the result.json files of sealift-train run");
    try {
      results.push_back(nlohmann::json::parse(file));
      for (const char* key : {"parallel_method", "world_size", "losses", "entropy_floor", "configuration"}) {
        results.back().at(key);
      }
    } catch (const nlohmann::json::exception& error) {
      throw std::invalid_argument(path + " is not a result of sealift-train run: " + error.what());
    }
  }
  return results;
}

}  // namespace sealift::trainer
