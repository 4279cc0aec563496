// SPDX-License-Identifier: Apache-2.0
// `sealift-train compare`: finished runs in, what each cost side by side out.
// See compare/comparison.hpp. Needs neither LibTorch nor the machine that trained.
#include "trainer/verbs/shown_comparison.hpp"
#include "trainer/verbs/verbs.hpp"

namespace sealift::trainer {

void add_compare(bundle::Program& program) {
  struct CompareArguments {
    std::vector<std::string> files;
    double tolerance = 1e-4;
    ShownAs shown;
  };
  const auto arguments = std::make_shared<CompareArguments>();
  const auto verb = program.verb("compare", "what finished runs cost, side by side, and which method to take");
  verb.option("results", arguments->files, "result.json files, folders that have one, or peers.py's .jsonl").required();
  verb.option("--tolerance", arguments->tolerance, "largest relative difference of a loss in fp32")
      .between(0.0, 1.0)
      .show_default();
  add_shown(verb, arguments->shown);
  verb.action([arguments] {
    const auto runs = compare::read_costs(arguments->files);
    return show(compare::compare_runs(runs, arguments->tolerance), "sealift-train compare", arguments->shown);
  });
}

}  // namespace sealift::trainer
