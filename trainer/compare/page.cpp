// SPDX-License-Identifier: Apache-2.0
// See page.hpp.
#include "trainer/compare/page.hpp"

#include "trainer/compare/shown.hpp"

#include "sealift/bundle/core/html.hpp"

#include <algorithm>

namespace sealift::trainer::compare {
namespace {

constexpr const char* kStyle = R"css(
body{font:16px/1.5 system-ui,"Noto Sans CJK SC","Microsoft YaHei",sans-serif;max-width:60rem;margin:2rem auto;
padding:0 1rem;color:#1c2733;background:#fff}
h1{font-size:1.4rem;margin:0 0 .6rem}h2{font-size:1rem;margin:1.4rem 0 .3rem}
.advice{border-left:4px solid #1d6f8a;background:#eef6f9;padding:.7rem 1rem;margin:0 0 1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}
th,td{text-align:left;padding:.3rem .5rem .3rem 0;border-bottom:1px solid #d8dee4;vertical-align:top}
td{white-space:nowrap}td:first-child,td:last-child{white-space:normal;overflow-wrap:anywhere;min-width:7rem}
td:last-child{min-width:8rem}
.bad{color:#a3262a;font-weight:600}
.bar{display:grid;grid-template-columns:minmax(7rem,14rem) 1fr;gap:.2rem .8rem;align-items:center;font-size:.9rem}
.bar span{overflow-wrap:anywhere}.bar svg{width:100%;height:1.3rem}.note{color:#5a6773;font-size:.85rem}
@media(max-width:500px){.bar{grid-template-columns:1fr}.bar svg{margin-bottom:.4rem}}
)css";

std::string escaped(const std::string& text) {
  return bundle::html_escaped(text);
}

/// A bar whose length is the share of the most, with its number beside it.
std::string bar(double part, const std::string& number) {
  const auto width = std::to_string(static_cast<int>(std::clamp(part, 0.0, 1.0) * 220));
  return "<svg viewBox=\"0 0 320 20\" preserveAspectRatio=\"xMinYMid meet\" role=\"img\" aria-label=\"" +
         escaped(number) + "\"><rect x=\"0\" y=\"3\" width=\"" + width +
         "\" height=\"14\" rx=\"2\" fill=\"#1d6f8a\"/><text x=\"" + std::to_string(std::stoi(width) + 6) +
         "\" y=\"14.5\" font-size=\"13\" fill=\"#1c2733\">" + escaped(number) + "</text></svg>";
}

std::string bars_of(const Comparison& comparison, const Column& column, bool chinese) {
  double most = 0;
  for (const auto& run : comparison.runs) most = std::max(most, column.value(run).value_or(0));
  if (most <= 0) return {};
  most = std::max(most, column.whole);
  std::string text = std::string("<h2>") + (chinese ? column.chinese : column.english) + "</h2>\n<div class=\"bar\">\n";
  for (const auto& run : comparison.runs) {
    const auto value = column.value(run);
    if (!value) continue;
    text += "<span>" + escaped(run.name) + "</span>" + bar(*value / most, column.cell(run)) + '\n';
  }
  return text + "</div>\n";
}

std::string table_rows(const Comparison& comparison, plan::Language language) {
  const bool chinese = language == plan::Language::Chinese;
  std::string text = std::string("<div class=\"wide\"><table>\n<tr><th>") + (chinese ? "运行" : "run") + "</th>";
  for (const auto& column : columns())
    text += std::string("<th>") + (chinese ? column.chinese : column.english) + "</th>";
  text += std::string("<th>") + (chinese ? "损失" : "loss") + "</th></tr>\n";
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const auto& run = comparison.runs[i];
    const bool bad = comparison.agreements[i].kind == Agreement::Kind::Differs || !run.fault.empty();
    text += "<tr><td>" + escaped(run.name) + "</td>";
    for (const auto& column : columns()) text += "<td>" + escaped(column.cell(run)) + "</td>";
    text += std::string(bad ? "<td class=\"bad\">" : "<td>") +
            escaped(words_of(comparison.agreements[i], run, language)) + "</td></tr>\n";
  }
  return text + "</table></div>\n";
}

std::string devices_of(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const auto& run : comparison.runs) {
    if (!run.device.empty() && std::find(names.begin(), names.end(), run.device) == names.end())
      names.push_back(run.device);
  }
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string page_of(const Comparison& comparison, const std::string& title, plan::Language language) {
  const bool chinese = language == plan::Language::Chinese;
  std::string text = std::string("<!doctype html>\n<html lang=\"") + (chinese ? "zh-CN" : "en") +
                     "\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                     "content=\"width=device-width,initial-scale=1\">\n<title>" +
                     escaped(title) + "</title><style>" + kStyle + "</style></head><body>\n<h1>" + escaped(title) +
                     "</h1>\n<p class=\"advice\">" + escaped(advice_of(comparison, language)) + "</p>\n";
  for (const auto& column : columns()) {
    if (column.value) text += bars_of(comparison, column, chinese);
  }
  text += std::string("<h2>") + (chinese ? "全部数据" : "All numbers") + "</h2>\n" + table_rows(comparison, language);
  text += std::string("<p class=\"note\">") + (chinese ? "设备：" : "Devices: ") + escaped(devices_of(comparison)) +
          (chinese ? "。峰值内存：GPU 上为张量，CPU 上为整个进程；预估只含张量。等待通信：进程只在等待其他进程的"
                     "时间占每步的比例。"
                   : ". Peak memory: of tensors on a card, of a whole process on processors; foretold: of tensors "
                     "alone. Waiting: the share of a step in which a rank only waits for others.") +
          "</p>\n</body></html>\n";
  return text;
}

}  // namespace sealift::trainer::compare
