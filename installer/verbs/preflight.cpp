// SPDX-License-Identifier: Apache-2.0
// preflight: every check of apply, without installing. The exit code is that of the first failed check.
#include <memory>

#include "installer/print/preflight_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct PreflightArguments {
  BundleOptions bundle;
  std::filesystem::path prefix;
  bool compile_bytecode = false;
  bool json = false;
};

int run(const PreflightArguments& arguments) {
  const PreflightRun result = run_preflight({.bundle = arguments.bundle.bundle,
                                             .prefix = Prefix(arguments.prefix),
                                             .fingerprint = fingerprint_of(arguments.bundle.fingerprint),
                                             .allow_downgrade = arguments.bundle.allow_downgrade,
                                             .sandboxed_builds_only = arguments.bundle.sandboxed_builds_only,
                                             .machine = probe(),
                                             .compile_bytecode = arguments.compile_bytecode},
                                            Disk());
  bundle::print(arguments.json, json_of(result), text_of(result));
  return exit_code_of(result);
}

}  // namespace

void add_preflight(bundle::Program& program) {
  const bundle::Verb verb = program.verb("preflight", "print whether this machine can take a bundle; changes nothing");
  const auto arguments = std::make_shared<PreflightArguments>();
  verb.json(arguments->json);
  add_bundle_options(verb, arguments->bundle);
  add_compile_bytecode(verb, arguments->compile_bytecode);
  add_prefix(verb, arguments->prefix);
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
