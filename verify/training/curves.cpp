// SPDX-License-Identifier: Apache-2.0
// The comparison of curves and its words.
// See curves.hpp.
// A value that is missing or not finite never agrees.
#include "verify/training/curves.hpp"

#include "trainer/json_numbers.hpp"
#include "verify/conduct/culprits.hpp"
#include "verify/wording/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sealift::verify {
namespace {

/// Exit codes from here on stand for the signal that ended a program.
constexpr int kSignals = 128;

std::vector<double> numbers_of_array(const nlohmann::json& array) {
  std::vector<double> values;
  for (const auto& value : array) values.push_back(trainer::number_or_nan(value));
  return values;
}

Curve curve_of_values(const Phrase& name, const std::vector<double>& values, bool expected) {
  Curve curve{.name = name, .points = {}, .expected = expected};
  for (std::size_t step = 0; step < values.size(); ++step) {
    if (std::isfinite(values[step])) curve.points.emplace_back(static_cast<double>(step + 1), values[step]);
  }
  return curve;
}

/// `what`: of losses, or of gradient norms.
Figure figure_of_difference(const Phrase& what, const CurveDifference& difference, double tolerance, const Series& ours,
                            const Series& to) {
  return {.name = {"largest difference of a " + what.en + ": " + ours.name.en, what.zh + "的最大差异：" + ours.name.zh},
          .value = std::isfinite(difference.largest) ? difference.largest : 1e300,
          .unit = {"relative", "（相对值）"},
          .at_least = {},
          .at_most = tolerance,
          .basis = to.name};
}

void add_failure(Check& check, const Phrase& reason) {
  if (check.outcome != Outcome::Fail) check.reason = {};
  check.outcome = Outcome::Fail;
  append(check.reason, reason);
}

Phrase parted_in_step(const Phrase& what, const CurveDifference& difference, const Series& ours,
                      const Series& reference, double tolerance) {
  const auto step = std::to_string(*difference.first_step);
  const auto mine = exact_text(difference.ours), theirs = exact_text(difference.reference);
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

Series series_of(const nlohmann::json& ran, Phrase name) {
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
  const Phrase loss{"loss", "损失"}, norm{"gradient norm", "梯度范数"};
  check.graphs.push_back({.title = loss,
                          .x = {"step", "步"},
                          .y = {"loss in nats per token", "损失（nat/词元）"},
                          .curves = {curve_of_values(reference.name, reference.losses, true),
                                     curve_of_values(ours.name, ours.losses, false)}});
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
  check.figures.push_back(figure_of_difference(loss, losses, tolerance, ours, reference));
  check.figures.push_back(figure_of_difference(norm, norms, of_norms, ours, reference));
  if (losses.first_step) add_failure(check, parted_in_step(loss, losses, ours, reference, tolerance));
  if (norms.first_step) add_failure(check, parted_in_step(norm, norms, ours, reference, of_norms));
  if (check.outcome == Outcome::Fail) return;
  const auto steps = std::to_string(ours.losses.size()), apart = number_text(losses.largest, 2);
  const Phrase seen{
      ours.name.en + " and " + reference.name.en + " agree over " + steps + " steps (losses to " + apart + ")",
      ours.name.zh + "与" + reference.name.zh + "在 " + steps + " 步内一致（损失相对误差 " + apart + "）"};
  if (check.outcome != Outcome::Pass) check.reason = {};
  append(check.reason, seen);
  check.outcome = Outcome::Pass;
}

bool judge_failures(const std::vector<Measured>& all, Check& check) {
  std::vector<const Measured*> failed, killed;
  for (const auto& measured : all) {
    if (!measured.values.is_object() || !measured.values.contains("failed")) continue;
    failed.push_back(&measured);
    if (measured.values.at("code").get<int>() >= kSignals) killed.push_back(&measured);
  }
  Culprits culprits;
  for (const auto* measured : killed.empty() ? failed : killed) {
    const auto code = measured->values.at("code").get<int>();
    const auto ended = code >= kSignals ? Phrase{"signal " + std::to_string(code - kSignals),
                                                 "信号 " + std::to_string(code - kSignals)}
                                        : Phrase{"code " + std::to_string(code), "退出码 " + std::to_string(code)};
    const auto said = measured->values.at("failed").get<std::string>();
    culprits.add(name_of(*measured),
                 {"its training job ended with " + ended.en + (said.empty() ? " and said nothing" : ": " + said),
                  "其训练任务异常结束（" + ended.zh + "）" + (said.empty() ? "，未输出任何内容" : "：" + said)});
  }
  culprits.accuse(check);
  return !culprits.empty();
}

const nlohmann::json& of_first(const std::vector<Measured>& all) {
  for (const auto& measured : all) {
    if (measured.rank == 0 && measured.values.is_object()) return measured.values;
  }
  throw std::invalid_argument("rank 0 measured nothing");
}

}  // namespace sealift::verify
