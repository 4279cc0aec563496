// SPDX-License-Identifier: Apache-2.0
// gc: removes generations that nothing keeps, and the store items that only they used.
#include <memory>

#include "installer/print/gc_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct GcArguments {
  std::filesystem::path prefix;
  unsigned keep = 2;
  bool dry_run = false;
  bool json = false;
};

int run(const GcArguments& arguments) {
  Disk disk;
  const GcOptions options{.prefix = Prefix(arguments.prefix), .keep = arguments.keep, .dry_run = arguments.dry_run};
  const Cleanup cleanup = gc(options, disk);
  bundle::print_warnings(cleanup.warnings);
  bundle::print(arguments.json, json_of(cleanup, options), text_of(cleanup, options));
  return 0;
}

}  // namespace

void add_gc(bundle::Program& program) {
  const bundle::Verb verb = program.verb("gc", "remove generations and store items that nothing keeps");
  const auto arguments = std::make_shared<GcArguments>();
  verb.json(arguments->json);
  verb.option("--keep", arguments->keep, "how many of the newest generations stay").between(1, 9999);
  verb.flag("--dry-run", arguments->dry_run, "print what would go; changes nothing");
  add_prefix(verb, arguments->prefix);
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
