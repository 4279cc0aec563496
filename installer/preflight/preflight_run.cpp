// SPDX-License-Identifier: Apache-2.0
// Of the manifest only the signature is checked here, not the payload: an answer takes a second, whatever the size.
#include "installer/preflight/preflight_run.hpp"

#include <algorithm>

#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

using bundle::Json;
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

PreflightRun run_preflight(const ApplyOptions& options, const Disk& disk) {
  check_prefix(options.prefix);
  const Ground ground = look_at_ground(options.prefix, disk);
  const bundle::Trust trust{.state = bundle::trust_for_run(options.prefix.trust(), options.fingerprint),
                            .allow_downgrade = options.allow_downgrade};
  const bundle::VerifiedBundle bundle = bundle::verify(bundle::open(options.bundle), trust, options.now);
  const Plan plan = make_plan(bundle, options.prefix, disk, options.compile_bytecode);
  return {.name = bundle.manifest().name,
          .version = bundle.manifest().version,
          .prefix = options.prefix.root().string(),
          .warnings = bundle.warnings(),
          .findings = preflight(bundle.manifest(), options.machine, ground, plan, options.now)};
}

Json json_of(const PreflightRun& result) {
  Json rows = Json::array();
  for (const Finding& finding : result.findings) {
    Json row = {{"check", finding.check}, {"verdict", std::string(name_of(finding.verdict))}};
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

int exit_code_of(const PreflightRun& result) {
  for (const Finding& finding : result.findings)
    if (finding.verdict == Verdict::Fail) return static_cast<int>(finding.code);
  return 0;
}

}  // namespace sealift::installer
