// SPDX-License-Identifier: Apache-2.0
// The warnings of the verification come first, as rows of the check "trust".
#include "installer/print/preflight_report.hpp"

#include <algorithm>

namespace sealift::installer {

using Verdict = Finding::Verdict;

namespace {

std::size_t count(const PreflightRun& result, Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(result.findings.begin(), result.findings.end(),
                                                [&](const Finding& finding) { return finding.verdict == verdict; }));
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

}  // namespace

bundle::Json json_of(const PreflightRun& result) {
  bundle::Json rows = bundle::Json::array();
  for (const Finding& finding : result.findings) {
    bundle::Json row = {{"check", finding.check}, {"verdict", std::string(name_of(finding.verdict))}};
    const auto put = [&row](const char* key, const std::string& value) {
      if (!value.empty()) row[key] = value;
    };
    put("what", finding.facts.what);
    put("expected", finding.facts.expected);
    put("got", finding.facts.got);
    put("next", finding.facts.next);
    rows.push_back(std::move(row));
  }
  return {{"name", result.name},
          {"version", result.version},
          {"prefix", result.prefix},
          {"warnings", result.warnings},
          {"fails", count(result, Verdict::Fail)},
          {"warns", count(result, Verdict::Warn)},
          {"findings", std::move(rows)}};
}

std::string text_of(const PreflightRun& result) {
  std::string text = result.name + " version " + std::to_string(result.version) + " into " + result.prefix + "\n";
  for (const std::string& warning : result.warnings) text += "WARN  " + padded("trust", 14) + warning + "\n";
  for (const Finding& finding : result.findings) {
    const bool good = finding.verdict == Verdict::Ok;
    text += (good                               ? "OK    "
             : finding.verdict == Verdict::Warn ? "WARN  "
                                                : "FAIL  ") +
            padded(finding.check, 14) + finding.facts.got;
    if (!finding.facts.expected.empty()) text += " (wanted: " + finding.facts.expected + ")";
    text += "\n";
    if (!good) text += "        " + finding.facts.what + "\n        next: " + finding.facts.next + "\n";
  }
  const std::size_t fails = count(result, Verdict::Fail), warns = count(result, Verdict::Warn);
  return text +
         (fails != 0 ? "cannot be installed here: " + std::to_string(fails) + " failed, "
                     : std::string("can be installed here: ")) +
         std::to_string(warns) + " warning(s)\n";
}

}  // namespace sealift::installer
