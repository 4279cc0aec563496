// SPDX-License-Identifier: Apache-2.0
// `sealift-verify diff`: two reports in, what changed out.
// arguments -> read both -> compare -> print.
// Exit codes: 0 nothing became worse, 1 something did, 2 the two cannot be compared.
#include "trainer/failure.hpp"
#include "verify/pages/comparison_pages.hpp"
#include "verify/report/folder.hpp"
#include "verify/verbs/verbs.hpp"

#include <fstream>

namespace sealift::verify {
namespace {

struct DiffArguments {
  std::string before, after, html, language = "en";
  double threshold = 0.05;
  bool json = false;
};

/// A report, or the folder that it lies in.
std::filesystem::path report_at(const std::filesystem::path& given) {
  return std::filesystem::is_directory(given) ? given / "report.json" : given;
}

int print_diff(const DiffArguments& arguments) {
  const auto language = language_of(arguments.language);
  const auto before_file = report_at(arguments.before), after_file = report_at(arguments.after);
  const auto before = read_report(before_file), after = read_report(after_file);
  const auto comparison = compare(before, after, arguments.threshold);
  const Compared compared{before, after, before_file.string(), after_file.string()};
  if (!arguments.html.empty()) {
    std::ofstream out(arguments.html, std::ios::binary);
    out << comparison_html(comparison, compared, language);
    out.flush();
    if (!out) throw std::invalid_argument("cannot write " + arguments.html);
  }
  if (arguments.json)
    std::cout << comparison_json(comparison).dump(1) << '\n';
  else
    std::cout << comparison_text(comparison, compared, language);
  return comparison.worse() > 0 ? trainer::kBad : 0;
}

}  // namespace

void add_diff(bundle::Program& program) {
  const auto arguments = std::make_shared<DiffArguments>();
  const auto verb = program.verb("diff", "compare two reports: before and after a change, or two sites");
  verb.option("A", arguments->before, "the earlier report.json, or its folder").required();
  verb.option("B", arguments->after, "the later report.json, or its folder").required();
  verb.option("--threshold", arguments->threshold, "a figure has moved above this share of the larger value")
      .show_default();
  verb.option("--html", arguments->html, "also write a page to this file");
  verb.option("--lang", arguments->language, "en or zh");
  verb.flag("--json", arguments->json, "JSON in place of text");
  verb.action([arguments] { return print_diff(*arguments); });
}

}  // namespace sealift::verify
