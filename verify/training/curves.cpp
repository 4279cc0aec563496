// SPDX-License-Identifier: Apache-2.0
// The comparison of curves and its words.
// See curves.hpp.
// A value that is missing or not finite never agrees.
#include "verify/training/curves.hpp"

#include "trainer/json_numbers.hpp"
#include "verify/wording/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sealift::verify {
namespace {

std::vector<double> numbers_of_array(const nlohmann::json& array) {
  std::vector<double> values;
  for (const auto& value : array) values.push_back(trainer::number_or_nan(value));
  return values;
}

Curve curve_of_values(const std::string& name, const std::vector<double>& values, bool expected) {
  Curve curve{.name = name, .points = {}, .expected = expected};
  for (std::size_t step = 0; step < values.size(); ++step) {
    if (std::isfinite(values[step])) curve.points.emplace_back(static_cast<double>(step + 1), values[step]);
  }
  return curve;
}

Figure figure_of_difference(const std::string& name, const CurveDifference& difference, double tolerance,
                            const Series& to) {
  return {.name = name,
          .value = std::isfinite(difference.largest) ? difference.largest : 1e300,
          .unit = "relative",
          .at_least = {},
          .at_most = tolerance,
          .basis = to.name.en};
}

void add_failure(Check& check, const Sentence& reason) {
  if (check.outcome == Outcome::Fail) {
    check.reason.en += "; " + reason.en;
    check.reason.zh += "；" + reason.zh;
    return;
  }
  check.outcome = Outcome::Fail;
  check.reason = reason;
}

Sentence parted_in_step(const Sentence& what, const CurveDifference& difference, const Series& ours,
                        const Series& reference, double tolerance) {
  const auto step = std::to_string(*difference.first_step);
  const auto mine = number_text(difference.ours, 17), theirs = number_text(difference.reference, 17);
  const auto within = tolerance == 0 ? std::string("to the bit") : "within " + number_text(tolerance, 3) + " relative";
  const auto within_zh = tolerance == 0 ? std::string("逐位一致") : "相对误差 " + number_text(tolerance, 3);
  return {ours.name.en + " and " + reference.name.en + " part in step " + step + ": " + what.en + " " + mine +
              ", expected " + theirs + " " + within,
          ours.name.zh + "与" + reference.name.zh + "从第 " + step + " 步开始不同：" + what.zh + " " + mine +
              "，应为 " + theirs + "（" + within_zh + "）"};
}

}  // namespace

CurveDifference compare(const std::vector<double>& ours, const std::vector<double>& reference, double tolerance) {
  if (ours.size() != reference.size() || ours.empty()) {
    throw std::invalid_argument("a curve of " + std::to_string(ours.size()) + " steps is held against one of " +
                                std::to_string(reference.size()));
  }
  CurveDifference difference;
  for (std::size_t step = 0; step < ours.size(); ++step) {
    const double scale = std::abs(reference[step]);
    double apart = ours[step] == reference[step] ? 0 : std::abs(ours[step] - reference[step]) / scale;
    if (!std::isfinite(apart) || !std::isfinite(ours[step])) apart = std::numeric_limits<double>::infinity();
    difference.largest = std::max(difference.largest, apart);
    if (apart <= tolerance || difference.first_step) continue;
    difference.first_step = step + 1;
    difference.ours = ours[step];
    difference.reference = reference[step];
  }
  return difference;
}

Series series_of(const nlohmann::json& ran, Sentence name) {
  return {.name = std::move(name),
          .losses = numbers_of_array(ran.at("result").at("losses")),
          .norms = numbers_of_array(ran.at("norms"))};
}

double default_tolerance(const std::string& precision) {
  if (precision == "fp32") return 1e-4;
  return precision == "mixed" || precision == "bf16" || precision == "fp16" ? 2e-2 : 5e-2;
}

double norm_tolerance(double tolerance) {
  return std::max(10 * tolerance, std::min(100 * tolerance, 0.01));
}

void judge_curves(const Series& ours, const Series& reference, double tolerance, Check& check) {
  check.graphs.push_back({.title = "loss",
                          .x = "step",
                          .y = "loss in nats per token",
                          .curves = {curve_of_values(reference.name.en, reference.losses, true),
                                     curve_of_values(ours.name.en, ours.losses, false)}});
  if (ours.losses.size() != reference.losses.size() || ours.norms.size() != reference.norms.size()) {
    const auto mine = std::to_string(ours.losses.size()), theirs = std::to_string(reference.losses.size());
    return add_failure(
        check,
        {ours.name.en + " has " + mine + " losses and " + std::to_string(ours.norms.size()) + " gradient norms, " +
             reference.name.en + " " + theirs + " and " + std::to_string(reference.norms.size()),
         ours.name.zh + "有 " + mine + " 个损失值，" + reference.name.zh + "有 " + theirs + " 个"});
  }
  const auto losses = compare(ours.losses, reference.losses, tolerance);
  const auto of_norms = norm_tolerance(tolerance);
  const auto norms = compare(ours.norms, reference.norms, of_norms);
  check.figures.push_back(
      figure_of_difference("largest difference of a loss: " + ours.name.en, losses, tolerance, reference));
  check.figures.push_back(
      figure_of_difference("largest difference of a gradient norm: " + ours.name.en, norms, of_norms, reference));
  if (losses.first_step) add_failure(check, parted_in_step({"loss", "损失"}, losses, ours, reference, tolerance));
  if (norms.first_step)
    add_failure(check, parted_in_step({"gradient norm", "梯度范数"}, norms, ours, reference, of_norms));
  if (check.outcome == Outcome::Fail) return;
  const auto steps = std::to_string(ours.losses.size()), apart = number_text(losses.largest, 2);
  const Sentence seen{
      ours.name.en + " and " + reference.name.en + " agree over " + steps + " steps (losses to " + apart + ")",
      ours.name.zh + "与" + reference.name.zh + "在 " + steps + " 步内一致（损失相对误差 " + apart + "）"};
  if (check.outcome == Outcome::Pass) {
    check.reason.en += "; " + seen.en;
    check.reason.zh += "；" + seen.zh;
  } else {
    check.reason = seen;
  }
  check.outcome = Outcome::Pass;
}

bool judge_failures(const std::vector<Measured>& all, Check& check) {
  const Measured* worst = nullptr;
  bool killed = false;
  for (const auto& measured : all) {
    if (!measured.values.is_object() || !measured.values.contains("failed")) continue;
    const bool by_signal = measured.values.at("code").get<int>() >= 128;
    if (worst && (killed || !by_signal)) continue;
    worst = &measured;
    killed = by_signal;
  }
  if (!worst) return false;
  for (const auto& measured : all) {
    if (!measured.values.is_object() || !measured.values.contains("failed")) continue;
    if (killed && measured.values.at("code").get<int>() < 128) continue;
    check.at_fault.push_back("rank " + std::to_string(measured.rank) + " on " + measured.host + " (" + measured.device +
                             ")");
  }
  const auto code = std::to_string(worst->values.at("code").get<int>());
  const auto said = worst->values.at("failed").get<std::string>();
  add_failure(check,
              {check.at_fault.front() + ": its training job ended with " +
                   (killed ? "signal " + std::to_string(worst->values.at("code").get<int>() - 128) : "code " + code) +
                   ": " + said,
               check.at_fault.front() + "：训练作业异常结束（代码 " + code + "）：" + said});
  return true;
}

const nlohmann::json& of_first(const std::vector<Measured>& all) {
  for (const auto& measured : all) {
    if (measured.rank == 0 && measured.values.is_object()) return measured.values;
  }
  throw std::invalid_argument("rank 0 measured nothing");
}

}  // namespace sealift::verify
