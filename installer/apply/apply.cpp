// SPDX-License-Identifier: Apache-2.0
// Order: prefix lock -> trust -> verify -> sweep -> plan -> preflight, and only then the first write. Newer trust roots
// are the exception: a site takes them in even when it then refuses their bundle. A missing prefix is made after a
// passed preflight, so a refusal leaves no trace.
#include "installer/apply/apply.hpp"

#include <fcntl.h>

#include <optional>

#include "installer/apply/install.hpp"
#include "installer/apply/staging.hpp"
#include "installer/generations/activation.hpp"
#include "installer/generations/failed_generation.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/store/store.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> paths_of(const std::vector<const bundle::Entry*>& entries) {
  std::vector<std::string> paths;
  for (const bundle::Entry* entry : entries) paths.push_back(entry->path.text());
  return paths;
}

Applied summary_of(const bundle::VerifiedBundle& bundle, const InstallPlan& plan, std::vector<Finding> findings) {
  return {.name = bundle.manifest().name,
          .version = bundle.manifest().version,
          .identity = bundle.identity(),
          .signers = bundle.signers(),
          .root = bundle.root_name(),
          .warnings = bundle.warnings(),
          .findings = std::move(findings),
          .action = plan.action,
          .generation = plan.generation,
          .unpacked = paths_of(plan.unpack),
          .reused = paths_of(plan.reuse),
          .needed_bytes = plan.needed_bytes,
          .needed_inodes = plan.needed_inodes,
          .free = plan.free,
          .record = {}};
}

// Writes the files beside a generation that is about to become current. Also for a generation that exists already: the
// run that made it may have been killed before this step.
void prepare_switch(const Prefix& prefix, unsigned number, const Staging& staging, Disk& disk) {
  const GenerationRecord record = read_generation_record(prefix.generation(number), number);
  SmallFiles files = receipt_files(record, prefix);
  for (auto& file : activation_files(prefix, record.name)) files.push_back(std::move(file));
  replace_small_files(files, prefix, staging.folder(), disk);
  forget_failed(prefix, disk);  // an installation succeeded since
}

// Newer trust roots count from the moment they are seen, whatever is wrong with the bundle that brought them.
void take_in_roots(const bundle::OpenBundle& opened, bundle::TrustState& state, const Prefix& prefix, Disk& disk) {
  const std::string where = opened.seal_path.string();
  state = accept_roots(std::move(state), bundle::read_root_chain(opened.seal.roots, where), where);
  save_trust(prefix, disk, state);
}

}  // namespace

Applied apply(const ApplyOptions& options, Disk& disk, bundle::Progress& progress) {
  const Prefix& prefix = options.prefix;
  check_prefix(prefix);
  const PrefixFilesystem filesystem = probe_prefix_filesystem(prefix, disk);
  std::error_code ignored;
  std::optional<PrefixLock> lock;  // where nothing can be written, the preflight says so, with all other failures
  if (!options.dry_run && filesystem.writable && !filesystem.mount.read_only && fs::exists(prefix.folder(), ignored))
    lock.emplace(prefix, disk, "apply");

  bundle::OpenBundle opened = bundle::open(options.bundle);
  opened.more_folders = options.volumes;
  opened.read_once = true;
  if (!options.dry_run) opened.ask = options.ask;
  bundle::Trust trust{.state = bundle::trust_for_run(prefix.trust(), options.fingerprint),
                      .allow_downgrade = options.allow_downgrade};
  if (lock && !trust.state.root.empty()) take_in_roots(opened, trust.state, prefix, disk);
  const bundle::VerifiedBundle bundle = bundle::verify(opened, trust, options.now);

  if (lock) sweep(prefix, disk);  // no other run is at work
  InstallPlan plan = make_plan(bundle, prefix, disk, options.compile_bytecode);
  std::vector<Finding> findings = preflight(bundle.manifest(), options.machine, filesystem, plan, options.now);
  refuse_failures(findings, bundle.manifest());
  if (!lock && !options.dry_run) {
    lock.emplace(prefix, disk, "apply");
    if (bundle::trust_for_run(prefix.trust(), options.fingerprint) != trust.state) {
      // Another run made this prefix meanwhile: begin again, with the prefix lock from the start.
      lock.reset();
      return apply(options, disk, progress);
    }
    plan = make_plan(bundle, prefix, disk, options.compile_bytecode);  // another run may have filled the store
  }
  for (const std::string& warning : warnings_of(findings)) progress.note(warning);
  if (options.dry_run) return summary_of(bundle, plan, std::move(findings));

  Applied applied = summary_of(bundle, plan, std::move(findings));
  if (plan.action != InstallPlan::Action::Install) save_trust(prefix, disk, bundle.trust());
  if (plan.action == InstallPlan::Action::Nothing) {
    // The run that made it may have been killed before it synced these names.
    disk.sync_folder(prefix.generations());
    disk.sync_folder(prefix.folder());
    if (fs::exists(prefix.staging(), ignored)) Staging(prefix, disk).done();  // that run's
    return applied;
  }
  Staging staging(prefix, disk);
  if (plan.action == InstallPlan::Action::Install)
    applied.record = install(bundle, plan, options, applied.findings, staging, disk, progress);
  prepare_switch(prefix, plan.generation, staging, disk);
  point_current_at(prefix, plan.generation, staging.folder(), disk);
  staging.done();
  return applied;
}

}  // namespace sealift::installer
