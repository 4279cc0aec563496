// SPDX-License-Identifier: Apache-2.0
// `sealift-train check`: result.json files in, one verdict out.
// See check.hpp for the comparison; here are its arguments and how its report is printed.
// The report goes to stdout, each problem to stderr, so that a script can read the one and a person the other.
#include "trainer/verification/check.hpp"
#include "trainer/json_numbers.hpp"

#include "trainer/failure.hpp"
#include "trainer/verbs/verbs.hpp"

namespace sealift::trainer {
namespace {

nlohmann::ordered_json json_of(const CheckReport& report, std::size_t runs) {
  return {{"runs", runs},
          {"max_relative_difference", report.max_relative_difference},
          {"digits", report.digits},
          {"final_loss", report.final_loss},
          {"entropy_floor", report.floor},
          {"problems", report.problems},
          {"verdict", report.problems.empty() ? "pass" : "fail"}};
}

void print(const CheckReport& report, std::size_t runs) {
  std::cout << runs << " runs: losses agree to " << report.max_relative_difference << " relative (" << report.digits
            << " digits); final loss " << report.final_loss << " is " << report.final_loss / report.floor
            << " times the floor " << report.floor << "; " << (report.problems.empty() ? "pass" : "fail") << '\n';
}

}  // namespace

void add_check(bundle::Program& program) {
  struct CheckArguments {
    std::vector<std::string> files;
    double tolerance = 1e-4;
    double floor_factor = kFloorFactor;
    bool json = false;
  };
  const auto arguments = std::make_shared<CheckArguments>();
  const auto verb = program.verb("check", "compare result.json files with the first, and their losses with the floor");
  verb.option("results", arguments->files, "result.json files").required();
  verb.option("--tolerance", arguments->tolerance, "largest relative difference of a loss").show_default();
  verb.option("--floor-factor", arguments->floor_factor, "largest final loss, as a multiple of the floor")
      .show_default();
  verb.flag("--json", arguments->json, "print the report as JSON");
  verb.action([arguments] {
    const auto& [files, tolerance, floor_factor, json] = *arguments;
    const auto report = check(read_results(files), tolerance, floor_factor);
    if (json) {
      std::cout << with_all_numbers(json_of(report, files.size())).dump(1) << '\n';
    } else {
      print(report, files.size());
    }
    for (const auto& problem : report.problems) say(problem);
    return report.problems.empty() ? 0 : kBad;
  });
}

}  // namespace sealift::trainer
