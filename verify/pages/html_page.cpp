// SPDX-License-Identifier: Apache-2.0
// report.html: the first page, and a chapter for each part.
// See pages.hpp. First page: verdict -> identification -> what failed -> what was not run -> machines -> signatures.
// Pieces of HTML are concatenated; each text of a check passes `escaped` where it is put in.
#include "verify/pages/frame.hpp"
#include "verify/pages/pages.hpp"
#include "verify/pictures/graph_picture.hpp"
#include "verify/pictures/matrix_picture.hpp"
#include "verify/verdict/json.hpp"
#include "verify/wording/figures.hpp"
#include "verify/wording/folds.hpp"
#include "verify/wording/numbers.hpp"
#include "verify/wording/statement.hpp"
#include "verify/wording/texts.hpp"

#include <algorithm>
#include <array>

namespace sealift::verify {
namespace {

constexpr std::size_t kMostFigures = 48, kMostFacts = 64, kMostReason = 4000, kMostNamed = 24, kMostPictures = 24;
constexpr std::array kParts{Part::Installation, Part::Machine, Part::Arithmetic, Part::Communication,
                            Part::Training,     Part::Python,  Part::Egress};

std::string code(const std::string& text) {
  return "<code>" + escaped(text) + "</code>";
}

std::string lines_of(const std::vector<std::string>& texts) {
  std::string html;
  for (const auto& text : texts) html += (html.empty() ? "" : "<br>") + code(text);
  return html;
}

std::string reason_of(const Check& check, Language language, std::size_t most = kMostReason) {
  const auto whole = in(check.reason, language);
  const auto shown = shortened(whole, most);
  if (shown.empty()) return check.outcome == Outcome::Pass ? "" : word(Word::NoReason, language);
  return escaped(shown) + (shown == clean(whole) ? "" : " " + word(Word::CutHere, language));
}

std::string at_fault(const Check& check, Language language) {
  const auto culprits = folded_culprits(check.at_fault, kMostNamed);
  std::string text;
  for (const auto& item : culprits.items)
    text += (text.empty() ? "" : "; ") + escaped(shortened(in(item, language), 300));
  if (culprits.left_out) text += "; " + filled(Word::AndMore, language, {std::to_string(culprits.left_out)});
  return "<p><b>" + word(Word::AtFault, language) + ":</b> " +
         (text.empty() ? word(Word::NobodyNamed, language) : text) + "</p>\n";
}

std::size_t count(const Verdict& verdict, Outcome outcome, std::optional<Part> part = {}) {
  return static_cast<std::size_t>(std::count_if(verdict.checks.begin(), verdict.checks.end(), [&](const Check& check) {
    return check.outcome == outcome && (!part || check.part == *part);
  }));
}

std::string verdict_box(const Verdict& verdict, Language language) {
  const auto outcome = outcome_of(verdict);
  const auto meaning = outcome == Outcome::Pass   ? Word::PassMeans
                       : outcome == Outcome::Fail ? Word::FailMeans
                                                  : Word::NotRunMeans;
  const char* kind = outcome == Outcome::Pass ? "pass" : outcome == Outcome::Fail ? "fail" : "notrun";
  const auto open = reservation(verdict, language);
  const auto first = "<b>" + (open.empty() ? word(meaning, language) : escaped(open)) + "</b><br>";
  return std::string("<div class=\"verdict ") + kind + "\">" + outcome_badge(outcome, language) + "<div>" + first +
         (open.empty() ? "" : word(meaning, language) + "<br>") +
         filled(Word::Counts, language,
                {std::to_string(count(verdict, Outcome::Pass)), std::to_string(count(verdict, Outcome::Fail)),
                 std::to_string(count(verdict, Outcome::NotRun))}) +
         "</div></div>\n";
}

std::string identification(const Verdict& verdict, Language language) {
  std::vector<std::vector<std::string>> rows{
      {word(Word::Site, language), escaped(shortened(verdict.site, 300))},
      {word(Word::LevelOf, language), word(verdict.level, language)},
      {word(Word::Times, language), escaped(verdict.started) + " – " + escaped(verdict.finished)},
      {word(Word::Program, language), escaped(verdict.program)}};
  if (verdict.bundle) {
    rows.push_back(
        {word(Word::Bundle, language), escaped(verdict.bundle->name) + " " + escaped(verdict.bundle->version)});
    rows.push_back({word(Word::Manifest, language), code(verdict.bundle->manifest_sha256)});
    rows.push_back({word(Word::Signers, language), verdict.bundle->signers.empty()
                                                       ? word(Word::NoSigner, language)
                                                       : lines_of(verdict.bundle->signers)});
  } else {
    rows.push_back({word(Word::Bundle, language), word(Word::NoBundle, language)});
  }
  return table(rows, "pairs", true);
}

std::string what_failed(const Verdict& verdict, Language language) {
  auto html = "<h2>" + word(Word::WhatFailed, language) + "</h2>\n";
  if (count(verdict, Outcome::Fail) == 0) return html + "<p>" + word(Word::NothingFailed, language) + "</p>\n";
  html += "<ul>\n";
  for (const auto& check : verdict.checks) {
    if (check.outcome != Outcome::Fail) continue;
    html += "<li>" + mark(check.outcome) + " <b>" + escaped(in(check.title, language)) + "</b> <span class=\"name\">" +
            escaped(check.name) + "</span><br><span class=\"reason\">" + reason_of(check, language, 600) + "</span>" +
            at_fault(check, language) + "</li>\n";
  }
  return html + "</ul>\n";
}

/// Checks with the same reason stand in one item.
std::string what_was_not_run(const Verdict& verdict, Language language) {
  auto html = "<h2>" + word(Word::WhatWasNotRun, language) + "</h2>\n";
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const auto& check : verdict.checks) {
    if (check.outcome != Outcome::NotRun) continue;
    const auto reason = reason_of(check, language, 600);
    auto found = std::find_if(reasons.begin(), reasons.end(), [&](const auto& other) { return other.first == reason; });
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {reason, ""});
    found->second += (found->second.empty() ? "" : "; ") + escaped(in(check.title, language)) +
                     " <span class=\"name\">" + escaped(check.name) + "</span>";
  }
  for (const auto part : kParts) {
    const bool any = std::any_of(verdict.checks.begin(), verdict.checks.end(),
                                 [&](const Check& check) { return check.part == part; });
    if (!any) reasons.emplace_back(word(Word::NoCheck, language), word(part, language));
  }
  if (reasons.empty()) return html + "<p>" + word(Word::AllWasRun, language) + "</p>\n";
  html += "<ul>\n";
  for (const auto& [reason, checks] : reasons) {
    html += "<li>" + mark(Outcome::NotRun) + " " + checks + "<br><b>" + word(Word::Because, language) +
            ":</b> <span class=\"reason\">" + reason + "</span></li>\n";
  }
  return html + "</ul>\n";
}

std::string summary(const Verdict& verdict, Language language) {
  std::vector<std::vector<std::string>> rows(4);
  rows[0] = {word(Word::PartOf, language)};
  rows[1] = {mark(Outcome::Pass) + " " + word(Word::Passed, language)};
  rows[2] = {mark(Outcome::Fail) + " " + word(Word::Failed, language)};
  rows[3] = {mark(Outcome::NotRun) + " " + word(Word::NotRunCount, language)};
  for (const auto part : kParts) {
    rows[0].push_back(word(part, language));
    for (std::size_t i = 0; i < 3; ++i) {
      const auto of_part = count(verdict, static_cast<Outcome>(i), part);
      rows[i + 1].push_back(of_part == 0 ? "–" : std::to_string(of_part));
    }
  }
  return "<h2>" + word(Word::Summary, language) + "</h2>\n" + table(rows, "counts");
}

std::string machines(const Verdict& verdict, Language language) {
  auto html = "<h2>" + word(Word::Machines, language) + "</h2>\n";
  if (verdict.nodes.empty()) return html + "<p>" + word(Word::NoMachines, language) + "</p>\n";
  std::vector<std::vector<std::string>> rows{
      {word(Word::Hosts, language), word(Word::Ranks, language), word(Word::Devices, language)}};
  for (const auto& group : folded_nodes(verdict.nodes)) {
    rows.push_back(
        {escaped(shortened(folded_names(group.hosts), 2000)) + " (" + std::to_string(group.hosts.size()) + ")",
         escaped(shortened(folded_numbers(group.ranks), 1000)), escaped(shortened(group.devices, 2000))});
  }
  return html + table(rows, "machines");
}

std::string signature_block(Language language) {
  std::vector<std::vector<std::string>> rows{{word(Word::Role, language), word(Word::Name, language),
                                              word(Word::Date, language), word(Word::Signature, language)}};
  for (const auto role : {Word::Verified, Word::Reviewed, Word::Approved}) {
    rows.push_back({word(role, language), "", "", ""});
  }
  return "<section class=\"signatures\"><h2>" + word(Word::Signatures, language) + "</h2>\n" + table(rows, "sign") +
         "<p class=\"note\">" + word(Word::SignedElsewhere, language) + "</p></section>\n";
}

std::string figures(const Check& check, Language language) {
  if (check.figures.empty()) return {};
  std::vector<std::vector<std::string>> rows{{word(Word::FigureName, language), word(Word::Measured, language),
                                              word(Word::Expected, language), "", word(Word::Basis, language)}};
  const auto shown = shown_figures(check.figures, kMostFigures);
  for (const auto& figure : shown.figures) {
    const auto place = standing_of(figure);
    const auto verdict = place_text(place, language);
    rows.push_back({escaped(shortened(in(figure.name, language), 200)), escaped(value_text(figure, language)),
                    escaped(expectation_text(figure, language)),
                    place == Standing::Outside ? "<b>" + verdict + "</b>" : verdict,
                    escaped(shortened(in(figure.basis, language), 200))});
  }
  auto html = table(rows, "figures");
  if (shown.left_out == 0) return html;
  return html + "<p class=\"note\">" +
         filled(Word::FiguresLeftOut, language,
                {std::to_string(shown.left_out), std::to_string(shown.left_out_outside)}) +
         "</p>\n";
}

std::string facts(const Check& check, Language language) {
  if (check.facts.empty()) return {};
  std::vector<std::vector<std::string>> rows{{word(Word::Read, language), word(Word::Value, language)}};
  for (std::size_t i = 0; i < std::min(check.facts.size(), kMostFacts); ++i) {
    const auto &name = in(check.facts[i].name, language), &value = in(check.facts[i].value, language);
    rows.push_back({escaped(shortened(name, 200)),
                    "<span class=\"reason\">" + escaped(value.empty() ? "–" : shortened(value, 2000)) + "</span>"});
  }
  auto html = table(rows, "pairs");
  if (check.facts.size() <= kMostFacts) return html;
  return html + "<p class=\"note\">" +
         filled(Word::FactsLeftOut, language, {std::to_string(check.facts.size() - kMostFacts)}) + "</p>\n";
}

std::string pictures(const Check& check, Language language) {
  std::string html;
  std::size_t drawn = 0;
  for (const auto& graph : check.graphs) html += drawn++ < kMostPictures ? graph_picture(graph, language) + "\n" : "";
  for (const auto& matrix : check.matrices)
    html += drawn++ < kMostPictures ? matrix_picture(matrix, language) + "\n" : "";
  if (drawn <= kMostPictures) return html;
  return html + "<p class=\"note\">" + filled(Word::FactsLeftOut, language, {std::to_string(drawn - kMostPictures)}) +
         "</p>\n";
}

std::string check_block(const Check& check, Language language) {
  const char* kind = check.outcome == Outcome::Pass ? "pass" : check.outcome == Outcome::Fail ? "fail" : "notrun";
  auto html = std::string("<section class=\"check ") + kind + "\">\n<h3>" + outcome_badge(check.outcome, language) +
              "<span class=\"title\">" + escaped(in(check.title, language)) + "</span>";
  html += "</h3>\n<p><span class=\"name\">" + escaped(check.name) + "</span>";
  if (check.seconds > 0) {
    html += " <span class=\"took\">· " + filled(Word::Took, language, {seconds_text(check.seconds)}) + "</span>";
  }
  html += "</p>\n";
  if (const auto reason = reason_of(check, language); !reason.empty())
    html += "<p class=\"reason\">" + reason + "</p>\n";
  if (check.outcome == Outcome::Fail) html += at_fault(check, language);
  return html + figures(check, language) + pictures(check, language) + facts(check, language) + "</section>\n";
}

std::string chapter(const Verdict& verdict, Part part, Language language) {
  std::string html;
  for (const auto& check : verdict.checks) {
    if (check.part == part) html += check_block(check, language);
  }
  if (html.empty()) return {};
  // A part of which nothing was run is a line or two: it does not get a page of its own.
  const bool any_run = std::any_of(verdict.checks.begin(), verdict.checks.end(), [&](const Check& check) {
    return check.part == part && check.outcome != Outcome::NotRun;
  });
  return std::string("<section class=\"chapter") + (any_run ? " run" : "") + "\">\n<h2>" + word(part, language) +
         "</h2>\n" + html + "</section>\n";
}

}  // namespace

std::string html_page(const Verdict& verdict, Language language) {
  const auto title = word(Word::Report, language);
  auto body = "<h1>" + title + "</h1>\n" + verdict_box(verdict, language) + identification(verdict, language) +
              summary(verdict, language) + what_failed(verdict, language) + what_was_not_run(verdict, language) +
              machines(verdict, language) + signature_block(language);
  for (const auto part : kParts) body += chapter(verdict, part, language);
  return framed(title + ": " + shortened(verdict.site, 100) + ", " + statement(verdict, language), body, language);
}

}  // namespace sealift::verify
