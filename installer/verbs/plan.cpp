// SPDX-License-Identifier: Apache-2.0
// plan: what apply would do, which is apply's dry run. Takes no prefix lock.
#include <memory>

#include "installer/print/apply_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct PlanArguments {
  BundleOptions bundle;
  std::filesystem::path prefix;
  bool allow_other_name = false;
  AdditionOptions additions;
  bool compile_bytecode = false;
  bool json = false;
};

int run(const PlanArguments& arguments) {
  bundle::Progress progress;
  Disk disk;
  ApplyOptions options = apply_options_of(arguments.bundle, arguments.prefix, arguments.compile_bytecode);
  options.dry_run = true;
  options.allow_other_name = arguments.allow_other_name;
  options.additions = arguments.additions.asked();
  const Applied planned = apply(options, disk, progress);
  bundle::print_warnings(planned.warnings);
  bundle::print(arguments.json, json_of(planned, options), text_of(planned, options));
  return 0;
}

}  // namespace

void add_plan(bundle::Program& program) {
  const bundle::Verb verb = program.verb("plan", "print what apply would do; changes nothing");
  const auto arguments = std::make_shared<PlanArguments>();
  verb.json(arguments->json);
  add_bundle_options(verb, arguments->bundle);
  add_allow_other_name(verb, arguments->allow_other_name);
  add_additions(verb, arguments->additions);
  add_compile_bytecode(verb, arguments->compile_bytecode);
  add_prefix(verb, arguments->prefix);
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
