// SPDX-License-Identifier: Apache-2.0
// sealift-install: arguments -> options -> one call -> print. The only place that catches.
// Data goes to stdout, everything else to stderr; the exit code is the error's code.
#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "installer/report.hpp"
#include "installer/switch.hpp"
#include "installer/trust_store.hpp"

#ifndef SEALIFT_VERSION
#define SEALIFT_VERSION "unknown"
#endif

namespace {

using namespace sealift;
using namespace sealift::installer;

struct Arguments {
  std::string bundle;
  std::string prefix;
  std::vector<std::string> fingerprints;
  std::string fingerprint;
  unsigned generation = 0;
  // Each thread holds a few chunks; more than twelve would leave the promised 256 MiB.
  unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 12u);
  bool dry_run = false;
  bool json = false;
};

void print(const Arguments& arguments, const bundle::Json& json, const std::string& text) {
  std::cout << (arguments.json ? bundle::write_json(json) + "\n" : text) << std::flush;
}

// Keys named on the command line, and those that the site pinned.
bundle::TrustedKeys trusted_keys(const Arguments& arguments) {
  bundle::TrustedKeys keys;
  if (!arguments.prefix.empty()) keys = pinned_keys(Prefix(arguments.prefix));
  for (const std::string& text : arguments.fingerprints) keys.fingerprints.push_back(bundle::parse_fingerprint(text));
  return keys;
}

int run_probe(const Arguments& arguments) {
  const Machine machine = probe();
  print(arguments, json_of(machine), text_of(machine));
  return 0;
}

int run_trust_add(const Arguments& arguments) {
  Disk disk;
  const Prefix prefix(arguments.prefix);
  const bundle::Digest key = bundle::parse_fingerprint(arguments.fingerprint);
  const bool fresh = pin_key(prefix, disk, key);
  print(arguments, {{"key", "sha256:" + key.hex()}, {"added", fresh}},
        std::string(fresh ? "pinned" : "already pinned") + " sha256:" + key.hex() + "\n");
  return 0;
}

int run_trust_list(const Arguments& arguments) {
  const bundle::TrustedKeys keys = pinned_keys(Prefix(arguments.prefix));
  print(arguments, json_of(keys), text_of(keys));
  return 0;
}

int run_verify(const Arguments& arguments) {
  Progress progress(Progress::style_of_stderr());
  const Verification result = verify_every_byte(arguments.bundle, trusted_keys(arguments), arguments.threads, progress);
  if (result.failures.empty() || arguments.json) print(arguments, json_of(result), text_of(result));
  for (const bundle::Error& failure : result.failures)
    std::cerr << "error[" << bundle::name_of(failure.code()) << "]: " << failure.what() << "\n";
  return result.failures.empty() ? 0 : result.failures.front().exit_code();
}

int run_apply(const Arguments& arguments) {
  Progress progress(Progress::style_of_stderr());
  Disk disk;
  const ApplyOptions options{.bundle = arguments.bundle,
                             .prefix = Prefix(arguments.prefix),
                             .trusted = trusted_keys(arguments),
                             .machine = probe(),
                             .threads = arguments.threads,
                             .dry_run = arguments.dry_run};
  const Applied applied = apply(options, disk, progress);
  print(arguments, json_of(applied, options), text_of(applied, options));
  return 0;
}

int run_status(const Arguments& arguments) {
  const Status status = status_of(Prefix(arguments.prefix));
  print(arguments, json_of(status), text_of(status));
  return 0;
}

int run_switch(const Arguments& arguments) {
  Disk disk;
  const GenerationRecord record = switch_to(Prefix(arguments.prefix), arguments.generation, disk);
  print(arguments, {{"generation", record.number}, {"name", record.name}, {"version", record.version}},
        "generation " + std::to_string(record.number) + " is current: " + record.name + " version " +
            std::to_string(record.version) + "\n");
  return 0;
}

int fail(const Arguments& arguments, const bundle::Error& error) {
  std::cerr << "error[" << bundle::name_of(error.code()) << "]: " << error.what() << "\n";
  if (arguments.json) std::cout << bundle::write_json({{"error", json_of(error)}}) << "\n";
  return error.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  int (*verb)(const Arguments&) = nullptr;
  CLI::App app("Checks sealed bundles and installs them on a machine without a network.", "sealift-install");
  app.set_version_flag("--version", "sealift-install " SEALIFT_VERSION);
  app.require_subcommand(1);
  const auto add = [&](CLI::App& parent, const char* name, const char* what, int (*run)(const Arguments&)) {
    CLI::App* command = parent.add_subcommand(name, what);
    command->add_flag("--json", arguments.json, "print one JSON object on stdout");
    command->callback([&verb, run] { verb = run; });
    return command;
  };
  const auto prefix = [&](CLI::App* command, bool required = true) {
    command->add_option("--prefix", arguments.prefix, "the folder that is installed into")->required(required);
  };
  const auto bundle_options = [&](CLI::App* command) {
    command->add_option("BUNDLE", arguments.bundle, "the bundle's folder, or its seal")->required();
    command->add_option("--fingerprint", arguments.fingerprints, "a key to trust, besides those in PREFIX/trust");
    command->add_option("--threads", arguments.threads, "how many to work with")->check(CLI::Range(1u, 256u));
  };

  add(app, "probe", "print what this machine is, for a job file's target", run_probe);
  CLI::App* trust = app.add_subcommand("trust", "the keys that this site trusts");
  trust->require_subcommand(1);
  CLI::App* trust_add = add(*trust, "add", "pin a key by its fingerprint", run_trust_add);
  trust_add->add_option("FINGERPRINT", arguments.fingerprint, "sha256:…, as the sender told it")->required();
  prefix(trust_add);
  prefix(add(*trust, "list", "print the pinned keys", run_trust_list));
  CLI::App* verify = add(app, "verify", "read every byte of a bundle and say whether it is whole", run_verify);
  bundle_options(verify);
  prefix(verify, false);
  CLI::App* plan = add(app, "plan", "print what apply would do; changes nothing", run_apply);
  bundle_options(plan);
  prefix(plan);
  CLI::App* apply = add(app, "apply", "install a bundle and make it current", run_apply);
  bundle_options(apply);
  prefix(apply);
  apply->add_flag("--dry-run", arguments.dry_run, "the same as plan");
  prefix(add(app, "status", "list the generations of a prefix", run_status));
  CLI::App* switching = add(app, "switch", "make another generation current", run_switch);
  switching->add_option("N", arguments.generation, "the generation's number")->required();
  prefix(switching);

  try {
    app.parse(argc, argv);
    arguments.dry_run = arguments.dry_run || plan->parsed();
    return verb(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(bundle::ErrorCode::Usage);
  } catch (const bundle::Error& error) {
    return fail(arguments, error);
  } catch (const std::exception& error) {
    return fail(arguments, {bundle::ErrorCode::Io,
                            {.what = "something failed that this program does not expect", .got = error.what()}});
  }
}
