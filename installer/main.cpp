// SPDX-License-Identifier: Apache-2.0
// sealift-install: arguments -> options -> one call -> print. The only place that catches.
// Data goes to stdout, everything else to stderr; the exit code is the error's code.
#include <sys/stat.h>

#include <iostream>

#include "installer/arguments.hpp"
#include "installer/ask_volume.hpp"
#include "installer/doctor/doctor.hpp"
#include "installer/generations/gc.hpp"
#include "installer/generations/inventory.hpp"
#include "installer/preflight/preflight_run.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/print/report.hpp"
#include "installer/generations/switch.hpp"
#include "installer/prefix/trust_store.hpp"

namespace {

using namespace sealift;
using namespace sealift::installer;

void print(const Arguments& arguments, const bundle::Json& json, const std::string& text) {
  std::cout << (arguments.json ? bundle::write_json(json) + "\n" : text) << std::flush;
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) std::cerr << "warning: " << warning << "\n";
}

std::optional<bundle::Digest> fingerprint_of(const Arguments& arguments) {
  if (arguments.fingerprint.empty()) return std::nullopt;
  return bundle::parse_fingerprint(arguments.fingerprint);
}

std::vector<std::filesystem::path> roots_of(const Arguments& arguments) {
  return {arguments.roots.begin(), arguments.roots.end()};
}

SelfCheckOptions::Depth depth_of(const std::string& word) {
  using Depth = SelfCheckOptions::Depth;
  return word == "imports" ? Depth::Imports : word == "training" ? Depth::Training : Depth::Full;
}

int run_probe(const Arguments& arguments) {
  Machine machine = probe();
  if (!arguments.prefix.empty()) machine.target.free_gib = Disk().free_space(Prefix(arguments.prefix).folder()).bytes >> 30;
  print(arguments, json_of(machine), text_of(machine));
  return 0;
}

int run_trust_add(const Arguments& arguments) {
  Disk disk;
  const Prefix prefix(arguments.prefix);
  const TrustChange change = pin_root(prefix, disk, roots_of(arguments), *fingerprint_of(arguments));
  print(arguments, json_of(change), (change.changed ? "pinned\n" : "already pinned\n") + text_of(change.state));
  return 0;
}

int run_trust_update(const Arguments& arguments) {
  Disk disk;
  const TrustChange change = update_root(Prefix(arguments.prefix), disk, roots_of(arguments));
  print(arguments, json_of(change), (change.changed ? "updated\n" : "nothing new\n") + text_of(change.state));
  return 0;
}

int run_trust_show(const Arguments& arguments) {
  const bundle::TrustState state = bundle::trust_for_run(Prefix(arguments.prefix).trust(), std::nullopt);
  print(arguments, json_of(state), text_of(state));
  return 0;
}

int run_verify(const Arguments& arguments) {
  Progress progress(Progress::style_of_stderr());
  const std::filesystem::path folder = arguments.prefix.empty() ? "" : Prefix(arguments.prefix).trust();
  const bundle::Trust trust{.state = bundle::trust_for_run(folder, fingerprint_of(arguments)),
                            .allow_downgrade = arguments.allow_downgrade};
  bundle::OpenBundle opened = bundle::open(arguments.bundle);
  opened.more_folders = {arguments.volumes.begin(), arguments.volumes.end()};
  const Verification result = verify_every_byte(opened, trust, bundle::system_time(), arguments.threads, progress);
  warn(result.warnings);
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
                             .fingerprint = fingerprint_of(arguments),
                             .allow_downgrade = arguments.allow_downgrade,
                             .now = bundle::system_time(),
                             .machine = probe(),
                             .threads = arguments.threads,
                             .dry_run = arguments.dry_run,
                             .self_check = depth_of(arguments.self_check),
                             .compile_bytecode = arguments.compile_bytecode,
                             .volumes = {arguments.volumes.begin(), arguments.volumes.end()},
                             .ask = terminal_asker()};
  const Applied applied = apply(options, disk, progress);
  warn(applied.warnings);
  print(arguments, json_of(applied, options), text_of(applied, options));
  return 0;
}

int run_preflight(const Arguments& arguments) {
  const PreflightRun result = run_preflight({.bundle = arguments.bundle,
                                             .prefix = Prefix(arguments.prefix),
                                             .fingerprint = fingerprint_of(arguments),
                                             .allow_downgrade = arguments.allow_downgrade,
                                             .machine = probe(),
                                             .compile_bytecode = arguments.compile_bytecode},
                                            Disk());
  print(arguments, json_of(result), text_of(result));
  return exit_code_of(result);
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

int run_inventory(const Arguments& arguments) {
  const TakenInventory inventory = take_inventory(Prefix(arguments.prefix));
  warn(inventory.warnings);
  std::cout << bundle::write_inventory(inventory.found) << std::flush;
  return 0;
}

int run_receipt(const Arguments& arguments) {
  const GenerationRecord record = record_for_receipt(Prefix(arguments.prefix), arguments.generation);
  std::cout << (arguments.json ? receipt_of(record) : receipt_page(record)) << std::flush;
  return 0;
}

int run_pin(const Arguments& arguments, bool pin) {
  Disk disk;
  const Prefix prefix(arguments.prefix);
  const bool changed =
      pin ? pin_generation(prefix, arguments.generation, disk) : unpin_generation(prefix, arguments.generation, disk);
  print(arguments, {{"generation", arguments.generation}, {"pinned", pin}, {"changed", changed}},
        "generation " + std::to_string(arguments.generation) + " is " + (changed ? "" : "already ") +
            (pin ? "pinned" : "not pinned") + "\n");
  return 0;
}

int run_gc(const Arguments& arguments) {
  Disk disk;
  const GcOptions options{.prefix = Prefix(arguments.prefix), .keep = arguments.keep, .dry_run = arguments.dry_run};
  const Cleanup cleanup = gc(options, disk);
  warn(cleanup.warnings);
  print(arguments, json_of(cleanup, options), text_of(cleanup, options));
  return 0;
}

int run_doctor(const Arguments& arguments) {
  Progress progress(Progress::style_of_stderr());
  Disk disk;
  const DoctorOptions options{
      .prefix = Prefix(arguments.prefix), .repair = arguments.repair, .threads = arguments.threads};
  const Checkup checkup = doctor(options, disk, progress);
  print(arguments, json_of(checkup, options), text_of(checkup, options));
  return verdict(checkup) ? static_cast<int>(*verdict(checkup)) : 0;
}

int run(const Arguments& arguments) {
  switch (arguments.verb) {
    case Verb::Probe:
      return run_probe(arguments);
    case Verb::TrustAdd:
      return run_trust_add(arguments);
    case Verb::TrustUpdate:
      return run_trust_update(arguments);
    case Verb::TrustShow:
      return run_trust_show(arguments);
    case Verb::Verify:
      return run_verify(arguments);
    case Verb::Preflight:
      return run_preflight(arguments);
    case Verb::Apply:
      return run_apply(arguments);
    case Verb::Status:
      return run_status(arguments);
    case Verb::Switch:
      return run_switch(arguments);
    case Verb::Inventory:
      return run_inventory(arguments);
    case Verb::Receipt:
      return run_receipt(arguments);
    case Verb::Pin:
    case Verb::Unpin:
      return run_pin(arguments, arguments.verb == Verb::Pin);
    case Verb::Gc:
      return run_gc(arguments);
    case Verb::Doctor:
      return run_doctor(arguments);
  }
  return 2;
}

int fail(const Arguments& arguments, const bundle::Error& error) {
  std::cerr << "error[" << bundle::name_of(error.code()) << "]: " << error.what() << "\n";
  if (arguments.json) std::cout << bundle::write_json({{"error", json_of(error)}}) << "\n";
  return error.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  ::umask(022);  // a folder has its mode from the first moment, so a crash cannot leave one that others cannot enter
  Arguments arguments;
  if (const std::optional<int> exit = parse_arguments(argc, argv, arguments)) return *exit;
  try {
    return run(arguments);
  } catch (const bundle::Error& error) {
    return fail(arguments, error);
  } catch (const std::exception& error) {
    return fail(arguments, {bundle::ErrorCode::Io,
                            {.what = "something failed that this program does not expect", .got = error.what()}});
  }
}
