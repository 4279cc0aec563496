// SPDX-License-Identifier: Apache-2.0
// report.txt: the same report for a terminal, a mail or a log.
// See pages.hpp. The order is that of the HTML page; pictures are left to it.
// A line of the report begins with its own words: texts of others are kept on one line, or indented.
#include "verify/pages/pages.hpp"
#include "verify/verdict/json.hpp"
#include "verify/wording/figures.hpp"
#include "verify/wording/folds.hpp"
#include "verify/wording/numbers.hpp"
#include "verify/wording/statement.hpp"
#include "verify/wording/texts.hpp"

#include <algorithm>

namespace sealift::verify {
namespace {

constexpr std::size_t kMostRows = 32;

std::string said(const std::string& text, std::size_t most = 300) {
  return one_line(shortened(text, most));
}

std::string pair_line(const std::string& name, const std::string& value) {
  return "  " + name + ": " + value + "\n";
}

std::string heading(const std::string& text) {
  return "\n== " + text + " ==\n";
}

/// The lines of `text`, each indented.
std::string indented(const std::string& text) {
  std::string lines = "    ";
  for (const char c : shortened(text, 4000)) {
    lines += c;
    if (c == '\n') lines += "    ";
  }
  return lines + "\n";
}

std::string text_of_identity(const Verdict& verdict, Language language) {
  auto text = pair_line(word(Word::Site, language), said(verdict.site)) +
              pair_line(word(Word::LevelOf, language), word(verdict.level, language)) +
              pair_line(word(Word::Times, language), said(verdict.started) + " – " + said(verdict.finished)) +
              pair_line(word(Word::Program, language), said(verdict.program));
  if (!verdict.bundle) return text + pair_line(word(Word::Bundle, language), word(Word::NoBundle, language));
  text += pair_line(word(Word::Bundle, language), said(verdict.bundle->name) + " " + said(verdict.bundle->version));
  text += pair_line(word(Word::Manifest, language), said(verdict.bundle->manifest_sha256));
  if (verdict.bundle->signers.empty()) {
    return text + pair_line(word(Word::Signers, language), word(Word::NoSigner, language));
  }
  for (const auto& signer : verdict.bundle->signers) text += pair_line(word(Word::Signers, language), said(signer));
  return text;
}

std::string text_of_machines(const Verdict& verdict, Language language) {
  auto text = heading(word(Word::Machines, language));
  if (verdict.nodes.empty()) return text + "  " + word(Word::NoMachines, language) + "\n";
  for (const auto& group : folded_nodes(verdict.nodes)) {
    text += pair_line(
        said(folded_names(group.hosts), 2000),
        word(Word::Ranks, language) + " " + said(folded_numbers(group.ranks), 1000) + "; " + said(group.devices, 2000));
  }
  return text;
}

std::string text_of_culprits(const Check& check, Language language) {
  const auto culprits = folded_culprits(check.at_fault, kMostRows);
  std::string text;
  for (const auto& item : culprits.items) text += (text.empty() ? "" : "; ") + said(in(item, language));
  if (culprits.left_out) text += "; " + filled(Word::AndMore, language, {std::to_string(culprits.left_out)});
  return "    " + word(Word::AtFault, language) + ": " + (text.empty() ? word(Word::NobodyNamed, language) : text) +
         "\n";
}

std::string text_of_figures(const Check& check, Language language) {
  const auto shown = shown_figures(check.figures, kMostRows);
  std::string text;
  for (const auto& figure : shown.figures) {
    text += "    " + said(in(figure.name, language)) + " = " + said(value_text(figure, language));
    const auto expected = expectation_text(figure, language);
    if (!expected.empty()) {
      text += " (" + place_text(standing_of(figure), language) + ": " + expected +
              (figure.basis.en.empty() ? "" : ", " + said(in(figure.basis, language))) + ")";
    }
    text += "\n";
  }
  if (shown.left_out == 0) return text;
  return text + "    " +
         filled(Word::FiguresLeftOut, language,
                {std::to_string(shown.left_out), std::to_string(shown.left_out_outside)}) +
         "\n";
}

std::string text_of_facts(const Check& check, Language language) {
  std::string text;
  for (std::size_t i = 0; i < std::min(check.facts.size(), kMostRows); ++i) {
    text += "    " + said(in(check.facts[i].name, language)) + ": " + said(in(check.facts[i].value, language)) + "\n";
  }
  if (check.facts.size() <= kMostRows) return text;
  return text + "    " + filled(Word::FactsLeftOut, language, {std::to_string(check.facts.size() - kMostRows)}) + "\n";
}

std::string text_of_check(const Check& check, Language language) {
  auto text = mark(check.outcome) + " " + word(check.outcome, language) + "  " + said(check.name) + ": " +
              said(in(check.title, language)) + " (" + seconds_text(check.seconds) + ")\n";
  const auto& reason = in(check.reason, language);
  if (!reason.empty())
    text += indented(reason);
  else if (check.outcome != Outcome::Pass)
    text += indented(word(Word::NoReason, language));
  if (check.outcome == Outcome::Fail) text += text_of_culprits(check, language);
  return text + text_of_figures(check, language) + text_of_facts(check, language);
}

std::size_t number_with(const Verdict& verdict, Outcome outcome) {
  return static_cast<std::size_t>(std::count_if(verdict.checks.begin(), verdict.checks.end(),
                                                [&](const Check& check) { return check.outcome == outcome; }));
}

}  // namespace

std::string text_page(const Verdict& verdict, Language language) {
  const auto outcome = outcome_of(verdict);
  auto text =
      word(Word::Report, language) + ": " + mark(outcome) + " " + statement(verdict, language) + "\n  " +
      filled(Word::Counts, language,
             {std::to_string(number_with(verdict, Outcome::Pass)), std::to_string(number_with(verdict, Outcome::Fail)),
              std::to_string(number_with(verdict, Outcome::NotRun))}) +
      "\n" + text_of_identity(verdict, language) + text_of_machines(verdict, language);
  for (const auto part : {Part::Installation, Part::Machine, Part::Arithmetic, Part::Communication, Part::Training,
                          Part::Python, Part::Egress}) {
    text += heading(word(part, language));
    const auto before = text.size();
    for (const auto& check : verdict.checks) {
      if (check.part == part) text += text_of_check(check, language);
    }
    if (text.size() == before) text += mark(Outcome::NotRun) + " " + word(Word::NoCheck, language) + "\n";
  }
  text += heading(word(Word::Signatures, language));
  for (const auto role : {Word::Verified, Word::Reviewed, Word::Approved}) {
    text += "  " + word(role, language) + ": ____________________  " + word(Word::Date, language) + ": ____________  " +
            word(Word::Signature, language) + ": ____________________\n";
  }
  return text + "  " + word(Word::SignedElsewhere, language) + "\n";
}

}  // namespace sealift::verify
