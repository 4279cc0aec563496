// SPDX-License-Identifier: Apache-2.0
// Which of several runs to take, in words. See comparison.hpp.
// By tokens a second and peak memory alone, of runs that computed the same; the share of waiting is the reason.
#include "trainer/compare/comparison.hpp"
#include "trainer/compare/shown.hpp"

#include <cmath>

namespace sealift::trainer::compare {
namespace {

/// Rates and peaks that differ by less are one: two runs of one setting differ by that much.
constexpr double kIndistinct = 0.05;

/// `english` or `chinese`, with $1 to $4 replaced.
struct Sentence {
  const char *english, *chinese;

  std::string in(plan::Language language, const std::vector<std::string>& values) const {
    std::string text = language == plan::Language::Chinese ? chinese : english;
    std::string filled;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool is_place = text[i] == '$' && i + 1 < text.size();
      if (!is_place) {
        filled += text[i];
      } else {
        filled += values.at(static_cast<std::size_t>(text[++i] - '1'));
      }
    }
    return filled;
  }
};

constexpr Sentence kDiffers{
    "$1 and $2 computed different losses (relative difference $3): find the cause before "
    "taking either. ",
    "$1 与 $2 算出的损失不同（相对差 $3）：先查明原因，再选用其一。"};
constexpr Sentence kNothing{"There are not two runs of one job, on one kind of device, with a rate: nothing to choose.",
                            "没有两次任务相同、设备同类且测得速度的运行，无从选择。"};
constexpr Sentence kOfProcessors{"These are figures of processors and advise nothing about cards. ",
                                 "以下为 CPU 上的数据，不能据此为 GPU 选方法。"};
constexpr Sentence kBoth{"Take $1: it is the fastest ($2 tokens/s a device) and takes the least memory ($3).",
                         "选 $1：最快（每设备每秒 $2 个词元），占内存也最少（$3）。"};
constexpr Sentence kFastest{
    "Take $1: it is the fastest ($2 tokens/s a device), and the others save no memory worth it.",
    "选 $1：最快（每设备每秒 $2 个词元），其他方法省下的内存可以忽略。"};
constexpr Sentence kAsFast{"Take $1: it is as fast as $2 within 5 % and takes $3 less memory.",
                           "选 $1：与 $2 速度相差不到 5 %，且少占 $3 内存。"};
constexpr Sentence kFaster{"Take $1 where its $2 fit: it makes $3 % more tokens/s a device than $4. ",
                           "若放得下 $2 内存，选 $1：每设备每秒的词元数比 $4 高 $3 %。"};
constexpr Sentence kLeaner{"$1 takes $2 less memory and is for what does not fit otherwise.",
                           "$1 少占 $2 内存，适合放不下的情形。"};
constexpr Sentence kWaits{" The reason: $1 waits for other ranks in $2 % of a step, $3 in $4 %.",
                          "原因：每步中 $1 有 $2 % 的时间在等待其他进程，$3 为 $4 %。"};

bool can_be_chosen(const RunCost& run, const Agreement& agreement) {
  using Kind = Agreement::Kind;
  const bool same_job = agreement.kind == Kind::First || agreement.kind == Kind::Agrees;
  return run.fault.empty() && run.tokens && *run.tokens > 0 && run.peak_bytes && same_job;
}

std::string percent(double part) {
  return std::to_string(std::lround(100 * part));
}

}  // namespace

std::string advice_of(const Comparison& comparison, plan::Language language) {
  std::string text;
  const RunCost *first = nullptr, *fastest = nullptr, *leanest = nullptr;
  std::size_t candidates = 0;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const auto& run = comparison.runs[i];
    const auto& agreement = comparison.agreements[i];
    if (agreement.kind == Agreement::Kind::First) first = &run;
    if (agreement.kind == Agreement::Kind::Differs)
      text += kDiffers.in(language, {run.name, first->name, short_number(agreement.difference)});
    if (!can_be_chosen(run, agreement) || run.on_card != first->on_card) continue;
    ++candidates;
    if (!fastest || *run.tokens > *fastest->tokens) fastest = &run;
    if (!leanest || *run.peak_bytes < *leanest->peak_bytes) leanest = &run;
  }
  if (candidates < 2) return text + kNothing.in(language, {});
  if (!fastest->on_card) text += kOfProcessors.in(language, {});
  if (fastest == leanest)
    return text + kBoth.in(language, {fastest->name, whole(*fastest->tokens), bytes_text(*fastest->peak_bytes)});
  if (*leanest->peak_bytes > (1 - kIndistinct) * *fastest->peak_bytes)
    return text + kFastest.in(language, {fastest->name, whole(*fastest->tokens)});
  const auto saved = bytes_text(*fastest->peak_bytes - *leanest->peak_bytes);
  const auto gain = *fastest->tokens / *leanest->tokens - 1;
  if (gain < kIndistinct) return text + kAsFast.in(language, {leanest->name, fastest->name, saved});
  text += kFaster.in(language, {fastest->name, bytes_text(*fastest->peak_bytes), percent(gain), leanest->name});
  text += kLeaner.in(language, {leanest->name, saved});
  if (fastest->waiting && leanest->waiting) {
    text += kWaits.in(language, {leanest->name, percent(*leanest->waiting), fastest->name, percent(*fastest->waiting)});
  }
  return text;
}

}  // namespace sealift::trainer::compare
