// SPDX-License-Identifier: Apache-2.0
// apply: installs a bundle and makes it current. Asks for missing discs where a person sits at the terminal.
#include <memory>

#include "installer/host/ask_volume.hpp"
#include "installer/print/apply_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct ApplyArguments {
  BundleOptions bundle;
  std::filesystem::path prefix;
  std::string self_test = "full";
  std::vector<std::string> waivers;
  bool compile_bytecode = false;
  bool allow_other_name = false;
  AdditionOptions additions;
  bool verify_store = false;
  bool dry_run = false;
  bool json = false;
};

SelfCheckOptions::Depth depth_of(const std::string& word) {
  using Depth = SelfCheckOptions::Depth;
  return word == "imports" ? Depth::Imports : word == "training" ? Depth::Training : Depth::Full;
}

int run(const ApplyArguments& arguments) {
  bundle::Progress progress;
  Disk disk;
  ApplyOptions options = apply_options_of(arguments.bundle, arguments.prefix, arguments.compile_bytecode);
  options.allow_other_name = arguments.allow_other_name;
  options.additions = arguments.additions.asked();
  options.verify_store = arguments.verify_store;
  options.dry_run = arguments.dry_run;
  options.self_check = depth_of(arguments.self_test);
  options.waivers = bundle::parse_waivers(arguments.waivers);
  options.ask = terminal_asker();
  const Applied applied = apply(options, disk, progress);
  bundle::print_warnings(applied.warnings);
  bundle::print(arguments.json, json_of(applied, options), text_of(applied, options));
  return 0;
}

}  // namespace

void add_apply(bundle::Program& program) {
  const bundle::Verb verb = program.verb("apply", "install a bundle and make it current");
  const auto arguments = std::make_shared<ApplyArguments>();
  verb.json(arguments->json);
  add_bundle_options(verb, arguments->bundle);
  add_prefix(verb, arguments->prefix);
  verb.option("--self-test", arguments->self_test, "how much to try before the switch: imports, full or training")
      .one_of({"imports", "full", "training"});
  verb.option("--waive", arguments->waivers,
              "PATH=REASON: go on although this native file does not load; the receipt keeps both; may be repeated")
      .repeated();
  add_compile_bytecode(verb, arguments->compile_bytecode);
  add_allow_other_name(verb, arguments->allow_other_name);
  add_additions(verb, arguments->additions);
  verb.flag("--verify-store", arguments->verify_store,
            "hash every file that is reused from the store, and hold its records to the bundle");
  verb.flag("--dry-run", arguments->dry_run, "the same as plan");
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
