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

void print_diff(const DiffArguments& arguments) {
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
  if (comparison.worse() > 0) throw CLI::RuntimeError(trainer::kBad);
}

}  // namespace

void add_diff(CLI::App& app) {
  const auto arguments = std::make_shared<DiffArguments>();
  CLI::App* verb = app.add_subcommand("diff", "compare two reports: before and after a change, or two sites");
  verb->add_option("A", arguments->before, "the earlier report.json, or its folder")->required();
  verb->add_option("B", arguments->after, "the later report.json, or its folder")->required();
  verb->add_option("--threshold", arguments->threshold, "a figure has moved above this share of the larger value")
      ->capture_default_str();
  verb->add_option("--html", arguments->html, "also write a page to this file");
  verb->add_option("--lang", arguments->language, "en or zh");
  verb->add_flag("--json", arguments->json, "JSON in place of text");
  verb->callback([arguments] { print_diff(*arguments); });
}

}  // namespace sealift::verify
