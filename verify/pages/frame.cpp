// SPDX-License-Identifier: Apache-2.0
// The style of all pages.
// See frame.hpp.
// Outcomes differ by mark, word and border; curves by shape and grey: a page that was copied in black and white says it
// all.
#include "verify/pages/frame.hpp"

#include "verify/wording/texts.hpp"

namespace sealift::verify {
namespace {

constexpr const char* kStyle = R"css(
@page { size: A4; margin: 12mm 14mm 14mm; @bottom-right { content: counter(page) " / " counter(pages); font-size: 9pt } }
* { box-sizing: border-box }
body { font: 10.5pt/1.45 "Liberation Sans", "DejaVu Sans", Arial, "Noto Sans CJK SC", "Microsoft YaHei",
       "PingFang SC", "WenQuanYi Zen Hei", sans-serif; color: #111; background: #fff; max-width: 184mm; margin: 8mm auto;
       padding: 0 4mm; overflow-wrap: anywhere }
h1 { font-size: 19pt; margin: 0 0 3mm; border-bottom: 2px solid #111; padding-bottom: 2mm }
h2 { font-size: 13pt; margin: 5mm 0 1.5mm; border-bottom: 1px solid #777; break-after: avoid }
h3 { font-size: 11pt; margin: 0 0 1.5mm; break-after: avoid; display: flex; gap: 3mm; align-items: baseline }
h3 .title { flex: 1 }
h4 { font-size: 10.5pt; margin: 4mm 0 1mm; break-after: avoid }
p { margin: 1mm 0 }
.name, .took, .note { color: #444; font-size: 9pt }
code, .name { font-family: "Liberation Mono", "DejaVu Sans Mono", monospace; font-size: 8.8pt }
.badge { display: inline-block; padding: 0 2mm; border: 1.5px solid #111; font-weight: bold; white-space: nowrap;
         font-size: 9.5pt }
.badge.pass { color: #0a5c36 } .badge.fail { color: #fff; background: #8f1010; border-color: #8f1010 }
.badge.notrun { border-style: dashed; color: #333 }
.verdict { display: flex; gap: 5mm; align-items: center; border: 2.5px solid #111; padding: 3mm 4mm; margin: 3mm 0 }
.verdict .badge { font-size: 20pt; padding: 1mm 5mm; border-width: 3px }
.verdict.fail { border-style: double; border-width: 6px }
.verdict.notrun { border-style: dashed }
table { border-collapse: collapse; width: 100%; margin: 1.5mm 0 3mm; font-size: 9.5pt }
th, td { border: 1px solid #999; padding: 0.8mm 1.6mm; text-align: left; vertical-align: top }
th { background: #eee; font-weight: bold }
tr { break-inside: avoid }
thead { display: table-header-group }
table.pairs th, table.pairs td:first-child { width: 30% }
table.pairs td:first-child { background: #f4f4f4 }
table.counts td + td, table.figures td:nth-child(2) { font-variant-numeric: tabular-nums }
table.sign td { height: 9mm } table.sign td:nth-child(1) { width: 20% }
.check { border-top: 1px solid #bbb; padding: 3mm 0 1mm }
.check.fail { border-left: 4px solid #8f1010; padding-left: 3mm }
.check.notrun { border-left: 4px dashed #888; padding-left: 3mm; break-inside: avoid } .check p { break-after: avoid }
.reason { white-space: pre-wrap }
ul { margin: 1mm 0 2mm; padding-left: 2mm; list-style: none }
li { margin: 0.6mm 0; break-inside: avoid }
figure { margin: 3mm 0; break-inside: avoid } figcaption { font-weight: bold; font-size: 9.5pt }
svg { width: 100%; height: auto; max-width: 172mm; display: block }
svg.hidden { position: absolute; width: 0; height: 0 }
svg text { font-size: 11px; fill: #222 } svg text.cell { font-size: 9.5px } svg text[fill="#fff"] { fill: #fff }
.grid { stroke: #ddd } .frame { fill: none; stroke: #666 }
.curve { fill: none; stroke-width: 1.5 } .expected { fill: none; stroke: #8a8a8a; stroke-width: 4; stroke-dasharray: 8 4 }
.e1 { stroke-dasharray: 2 3 } .e2 { stroke-dasharray: 9 3 2 3 }
.mark { fill: #fff; stroke-width: 1.4 }
.s0 { stroke: #0b3d91 } .s1 { stroke: #a34700 } .s2 { stroke: #3d7a1f } .s3 { stroke: #7b2d8b } .s4 { stroke: #00808a }
.s5 { stroke: #6b5b00 }
.signatures { break-inside: avoid }
@media print { body { margin: 0; padding: 0 1mm; max-width: none; font-size: 9.5pt; line-height: 1.3 }
  h1 { font-size: 16pt; margin-bottom: 2mm; padding-bottom: 1mm } h2 { font-size: 11.5pt; margin: 3mm 0 1mm }
  table { font-size: 9pt; margin: 1mm 0 2mm } th, td { padding: 0.5mm 1.5mm } table.sign td { height: 7.5mm }
  ul { font-size: 8.6pt; line-height: 1.2 } ul code, ul .name { font-size: 7.8pt }
  .verdict { margin: 2mm 0; padding: 1.5mm 3mm } .verdict .badge { font-size: 16pt; padding: 0.5mm 4mm } .chapter.run { break-before: page }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact } a { color: inherit } }
)css";

constexpr const char* kHatch =
    "<svg class=\"hidden\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
    "patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/><path d=\"M0 6L6 0\" "
    "stroke=\"#777\"/></pattern></defs></svg>\n";

std::string row(const std::vector<std::string>& cells, const std::string& tag) {
  std::string html = "<tr>";
  for (const auto& cell : cells) html += "<" + tag + ">" + cell + "</" + tag + ">";
  return html + "</tr>\n";
}

}  // namespace

std::string framed(const std::string& title, const std::string& body, Language language) {
  // A browser that obeys the policy runs and fetches nothing, whatever a text in the page says.
  return std::string("<!DOCTYPE html>\n<html lang=\"") + (language == Language::English ? "en" : "zh-CN") +
         "\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n" + kHatch + body +
         "</body>\n</html>\n";
}

std::string table(const std::vector<std::vector<std::string>>& rows, const std::string& kind, bool headless) {
  std::string html = "<table class=\"" + kind + "\">\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool head = i == 0 && !headless;
    html += head ? "<thead>" + row(rows[i], "th") + "</thead>\n<tbody>\n" : row(rows[i], "td");
  }
  return html + (headless ? "" : "</tbody>\n") + "</table>\n";
}

std::string outcome_badge(Outcome outcome, Language language) {
  const char* kind = outcome == Outcome::Pass ? "pass" : outcome == Outcome::Fail ? "fail" : "notrun";
  return std::string("<span class=\"badge ") + kind + "\">" + mark(outcome) + " " + word(outcome, language) + "</span>";
}

}  // namespace sealift::verify
