// SPDX-License-Identifier: Apache-2.0
// What the program accepts, in one place, in the order in which an operator meets it.
// Wrong arguments end with 2 like every usage error, whatever number CLI11 has for them.
#include "installer/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "sealift/bundle/core/error.hpp"

#ifndef SEALIFT_VERSION
#define SEALIFT_VERSION "unknown"
#endif

namespace sealift::installer {

std::optional<int> parse_arguments(int argc, char** argv, Arguments& arguments) {
  // One more than there are processors, as one may wait for the disk. Each holds a few chunks; more than ten by
  // default would leave the promised 256 MiB.
  arguments.threads = std::clamp(std::thread::hardware_concurrency() + 1, 2u, 10u);
  CLI::App app("Checks sealed bundles and installs them on a machine without a network.", "sealift-install");
  app.set_version_flag("--version", "sealift-install " SEALIFT_VERSION);
  app.require_subcommand(1);
  const auto add = [&](CLI::App& parent, const char* name, const char* what, Verb verb) {
    CLI::App* command = parent.add_subcommand(name, what);
    command->add_flag("--json", arguments.json, "print one JSON object on stdout");
    command->callback([&arguments, verb] { arguments.verb = verb; });
    return command;
  };
  const auto prefix = [&](CLI::App* command, bool required = true) {
    command->add_option("--prefix", arguments.prefix, "the folder that is installed into")->required(required);
  };
  const auto bundle_options = [&](CLI::App* command) {
    command->add_option("BUNDLE", arguments.bundle, "the bundle's folder, or its seal")->required();
    command->add_option("--volumes", arguments.volumes, "further folders in which the bundle's volumes lie");
    command->add_option("--fingerprint", arguments.fingerprint,
                        "the root to begin from (sha256:...), where PREFIX/trust has none; apply pins it");
    command->add_flag("--allow-downgrade", arguments.allow_downgrade,
                      "take in an older version than was accepted, down to the rollback floors");
    command->add_option("--threads", arguments.threads, "how many to work with")->check(CLI::Range(1u, 256u));
  };
  const auto bytecode = [&](CLI::App* command) {
    command->add_flag("--compile-bytecode", arguments.compile_bytecode,
                      "compile every Python module once, into the generation");
  };

  prefix(add(app, "probe", "print what this machine is, for a job file's target", Verb::Probe), false);
  CLI::App* trust = app.add_subcommand("trust", "the root that this site trusts");
  trust->require_subcommand(1);
  const auto roots = [&](CLI::App* command) {
    command->add_option("ROOT", arguments.roots, "files of roots, oldest first, or a bundle that carries them")
        ->required();
    prefix(command);
  };
  CLI::App* trust_add = add(*trust, "add", "pin a root by its fingerprint, once", Verb::TrustAdd);
  roots(trust_add);
  trust_add->add_option("--fingerprint", arguments.fingerprint, "sha256:..., as the root's owner told it")->required();
  roots(add(*trust, "update", "take in the next root: a rotation or a revocation", Verb::TrustUpdate));
  prefix(add(*trust, "show", "print the root, its roles and what was accepted", Verb::TrustShow)->alias("list"));
  CLI::App* verify = add(app, "verify", "read every byte of a bundle and say whether it is whole", Verb::Verify);
  bundle_options(verify);
  prefix(verify, false);
  CLI::App* preflight =
      add(app, "preflight", "print whether this machine can take a bundle; changes nothing", Verb::Preflight);
  bundle_options(preflight);
  bytecode(preflight);
  prefix(preflight);
  CLI::App* plan = add(app, "plan", "print what apply would do; changes nothing", Verb::Apply);
  bundle_options(plan);
  bytecode(plan);
  prefix(plan);
  CLI::App* apply = add(app, "apply", "install a bundle and make it current", Verb::Apply);
  bundle_options(apply);
  prefix(apply);
  apply->add_option("--self-test", arguments.self_check, "how much to try before the switch: imports, full or training")
      ->check(CLI::IsMember({"imports", "full", "training"}));
  bytecode(apply);
  apply->add_flag("--dry-run", arguments.dry_run, "the same as plan");
  prefix(add(app, "status", "list the generations of a prefix", Verb::Status));
  const auto with_number = [&](const char* name, const char* what, Verb verb) {
    CLI::App* command = add(app, name, what, verb);
    command->add_option("N", arguments.generation, "the generation's number")->required();
    prefix(command);
  };
  with_number("switch", "make another generation current", Verb::Switch);
  with_number("pin", "keep a generation, whatever gc is told", Verb::Pin);
  with_number("unpin", "let gc remove a generation again", Verb::Unpin);
  CLI::App* receipt =
      add(app, "receipt", "print what was installed, by whose word, and what was checked", Verb::Receipt);
  receipt->add_option("N", arguments.generation, "the generation's number; without it the current one");
  prefix(receipt);
  CLI::App* gc = add(app, "gc", "remove generations and store items that nobody keeps", Verb::Gc);
  gc->add_option("--keep", arguments.keep, "how many of the newest generations stay")->check(CLI::Range(1u, 9999u));
  gc->add_flag("--dry-run", arguments.dry_run, "print what would go; changes nothing");
  prefix(gc);
  CLI::App* doctor = add(app, "doctor", "compare every installed file with what was signed", Verb::Doctor);
  doctor->add_option("--repair", arguments.repair, "a bundle: put right what is wrong from its verified bytes");
  doctor->add_option("--threads", arguments.threads, "how many to work with")->check(CLI::Range(1u, 256u));
  prefix(doctor);
  prefix(add(app, "inventory", "print what a prefix's store holds, for a bundle that leaves it out", Verb::Inventory));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(bundle::ErrorCode::Usage);
  }
  arguments.dry_run = arguments.dry_run || plan->parsed();
  return std::nullopt;
}

}  // namespace sealift::installer
