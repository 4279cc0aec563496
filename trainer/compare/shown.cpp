// SPDX-License-Identifier: Apache-2.0
// See shown.hpp.
#include "trainer/compare/shown.hpp"

#include "trainer/shown_number.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sealift::trainer::compare {
namespace {

constexpr const char* kNotKnown = "-";

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string or_dash(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : kNotKnown;
}

std::string seconds(double value) {
  return fixed(value, value < 10 ? 2 : 1) + " s";
}

std::string share(double value) {
  return fixed(100 * value, 0) + " %";
}

/// Columns that a terminal shows: characters beyond ASCII that are Chinese take two.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  for (const unsigned char byte : text) {
    if (byte < 0x80) ++width;
    if (byte >= 0xC0) width += byte >= 0xE0 ? 2 : 1;
  }
  return width;
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

const char* name_of(Agreement::Kind kind) {
  using enum Agreement::Kind;
  switch (kind) {
    case First:
      return "first";
    case Agrees:
      return "agrees";
    case Differs:
      return "differs";
    case AnotherJob:
      return "another_job";
    case Unknown:
      break;
  }
  return "unknown";
}

}  // namespace

std::string bytes_text(double bytes) {
  const auto mebibytes = bytes / (1 << 20);
  return mebibytes >= 1024 ? fixed(mebibytes / 1024, 2) + " GiB" : fixed(mebibytes, mebibytes < 10 ? 1 : 0) + " MiB";
}

std::string short_number(double value) {
  return shown_number(value, 2);
}

std::string whole(double value) {
  return fixed(value, 0);
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all{
      {"peak memory", "峰值内存", [](const RunCost& run) { return or_dash(run.peak_bytes, bytes_text); },
       [](const RunCost& run) { return run.peak_bytes; }},
      {"foretold", "预估", [](const RunCost& run) { return or_dash(run.planned_bytes, bytes_text); }, nullptr},
      {"tokens/s a device", "每设备词元/秒", [](const RunCost& run) { return or_dash(run.tokens, whole); },
       [](const RunCost& run) { return run.tokens; }},
      {"step", "每步", [](const RunCost& run) { return or_dash(run.step, seconds); }, nullptr},
      {"waiting", "等待通信", [](const RunCost& run) { return or_dash(run.waiting, share); },
       [](const RunCost& run) { return run.waiting; }, 1},
      {"start-up", "启动", [](const RunCost& run) { return or_dash(run.start_up, seconds); },
       [](const RunCost& run) { return run.start_up; }},
      {"checkpoint", "检查点", [](const RunCost& run) { return or_dash(run.checkpoint, seconds); },
       [](const RunCost& run) { return run.checkpoint; }},
  };
  return all;
}

std::string words_of(const Agreement& agreement, const RunCost& run, plan::Language language) {
  using enum Agreement::Kind;
  const bool chinese = language == plan::Language::Chinese;
  if (!run.fault.empty()) return (chinese ? "失败：" : "failed: ") + run.fault;
  switch (agreement.kind) {
    case First:
      return chinese ? "作为基准" : "the others are held to it";
    case Agrees:
      return (chinese ? "一致，相差 " : "agrees, to ") + short_number(agreement.difference);
    case Differs:
      return (chinese ? "不一致，相差 " : "DIFFERS by ") + short_number(agreement.difference);
    case Unknown:
      return chinese ? "没有损失" : "no losses";
    case AnotherJob:
      break;
  }
  std::string keys;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, agreement.other_keys.size()); ++i)
    keys += (i ? ", " : "") + agreement.other_keys[i];
  if (agreement.other_keys.size() > 3) keys += ", …";
  return (chinese ? "任务不同：" : "another job: ") + keys;
}

std::string table_of(const Comparison& comparison, plan::Language language) {
  const bool chinese = language == plan::Language::Chinese;
  std::vector<std::vector<std::string>> lines{{chinese ? "运行" : "run"}};
  for (const auto& column : columns()) lines.front().push_back(chinese ? column.chinese : column.english);
  lines.front().push_back(chinese ? "损失" : "loss");
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const auto& run = comparison.runs[i];
    auto& line = lines.emplace_back(std::vector<std::string>{run.name});
    for (const auto& column : columns()) line.push_back(column.cell(run));
    line.push_back(words_of(comparison.agreements[i], run, language));
  }
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) text += padded(line[i], widths[i]) + "  ";
    text += line.back() + '\n';
  }
  return text + '\n' + advice_of(comparison, language) + '\n';
}

nlohmann::ordered_json json_of(const Comparison& comparison) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const auto& run = comparison.runs[i];
    const auto& agreement = comparison.agreements[i];
    runs.push_back({{"name", run.name},
                    {"method", run.method},
                    {"ranks", run.ranks},
                    {"device", run.device},
                    {"peak_memory_bytes", or_null(run.peak_bytes)},
                    {"planned_memory_bytes", or_null(run.planned_bytes)},
                    {"tokens_per_second_per_device", or_null(run.tokens)},
                    {"step_seconds", or_null(run.step)},
                    {"planned_step_seconds", or_null(run.planned_step)},
                    {"waiting_share", or_null(run.waiting)},
                    {"start_up_seconds", or_null(run.start_up)},
                    {"checkpoint_seconds", or_null(run.checkpoint)},
                    {"losses", name_of(agreement.kind)},
                    {"max_relative_difference", agreement.difference},
                    {"other_settings", agreement.other_keys},
                    {"fault", run.fault.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(run.fault)}});
  }
  return {{"runs", runs}, {"advice", advice_of(comparison, plan::Language::English)}};
}

}  // namespace sealift::trainer::compare
