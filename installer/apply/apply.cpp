// SPDX-License-Identifier: Apache-2.0
// Order: trust -> verify -> prefix lock -> sweep -> plan -> preflight, and only then the first write. Newer trust roots
// are the exception: a site takes them in even when it then refuses their bundle. A missing prefix is made after a
// passed preflight, so a refusal leaves no trace.
#include "installer/apply/apply.hpp"

#include <fcntl.h>

#include <optional>

#include "installer/activation/activation.hpp"
#include "installer/apply/install.hpp"
#include "installer/apply/staging.hpp"
#include "installer/doctor/checkup.hpp"
#include "installer/generations/failed_generation.hpp"
#include "installer/generations/generation.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/host/mending.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/store/signed_records.hpp"
#include "installer/store/store.hpp"
#include "sealift/bundle/core/human_text.hpp"

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
          .added_to = plan.adds ? std::optional(words_for(bundles_of(plan.record).front())) : std::nullopt,
          .added = plan.record.added,
          .generation = plan.generation,
          .unpacked = paths_of(plan.unpack),
          .reused = paths_of(plan.reuse),
          .needed_bytes = plan.needed_bytes,
          .needed_inodes = plan.needed_inodes,
          .free = plan.free,
          .chunks = bundle.manifest().payload.chunk_count(),
          .record = {}};
}

// Writes the files beside a generation that is about to become current. Also for a generation that exists already: the
// run that made it may have been killed before this step.
void prepare_switch(const Prefix& prefix, unsigned number, const Staging& staging, Disk& disk) {
  const GenerationRecord record = read_generation_record(prefix.generation(number), number);
  SmallFiles files = receipt_files(record, prefix);
  for (auto& file : activation_files(prefix, record)) files.push_back(std::move(file));
  replace_small_files(files, prefix, staging.folder(), disk);
  forget_failed(prefix, disk);  // an installation succeeded since
}

bundle::OpenBundle open_as_asked(const ApplyOptions& options) {
  bundle::OpenBundle opened = bundle::open(options.bundle);
  opened.more_folders = options.volumes;
  opened.read_once = true;
  // Where nothing is pinned yet, the fingerprint is what there is to begin from.
  std::string trust = shell_option("--prefix", options.prefix.folder());
  if (options.fingerprint) trust += " --fingerprint " + bundle::fingerprint_text(*options.fingerprint);
  opened.mending = mending_here(options.bundle, options.volumes, trust);
  if (!options.dry_run) opened.ask = options.ask;
  return opened;
}

// What a look at seal, volumes and trust gave, without the prefix lock: a hostile seal may make looking take long, and
// meanwhile others can go on working.
struct Look {
  bundle::TrustState before;  // what the site trusted
  bundle::TrustState roots;   // and what it trusts with the seal's roots
  std::optional<bundle::VerifiedBundle> bundle;
  std::exception_ptr refusal;  // of the bundle; its roots count nevertheless
};

Look look_at(const bundle::OpenBundle& opened, const ApplyOptions& options) {
  Look look{.before = bundle::trust_for_run(options.prefix.trust(), options.fingerprint)};
  look.roots = follow_roots(look.before, opened.seal.roots, opened.seal_path.string());
  try {
    look.bundle = bundle::verify(opened,
                                 {.state = look.roots,
                                  .allow_downgrade = options.allow_downgrade,
                                  .sandboxed_builds_only = options.sandboxed_builds_only},
                                 options.now);
  } catch (const bundle::Error&) {
    look.refusal = std::current_exception();
  }
  return look;
}

// A bundle of models, data, images or packages of the system alone would take the programs' interpreter away.
[[noreturn]] void refuse_without_interpreter(const bundle::Manifest& manifest, const ApplyOptions& options) {
  throw bundle::Error(
      bundle::ErrorCode::Conflict,
      {.what = "the bundle brings no interpreter, and what is current has one; nothing was written",
       .where = options.prefix.current().string(),
       .expected = "a bundle with an interpreter, or a prefix of its own",
       .got = manifest.stem(),
       .next = "add it to what is current: apply --add; or install it beside: " +
               shell_option("--prefix", options.prefix.folder().parent_path() / manifest.name) +
               ", and name its files by that path; if it is to take the place of what is current: --allow-other-name"});
}

// The signer for another name or channel may be somebody else; only the operator says that theirs is to be used.
void refuse_other_name(const InstallPlan& plan, const bundle::Manifest& manifest, const ApplyOptions& options) {
  const bundle::Stream offered{.channel = manifest.channel, .name = manifest.name};
  if (!plan.current || options.allow_other_name || plan.adds) return;
  if (plan.loses_interpreter) refuse_without_interpreter(manifest, options);
  if (*plan.current == offered) return;
  throw bundle::Error(bundle::ErrorCode::Conflict,
                      {.what = "the bundle is of another name or channel than what is current; nothing was written",
                       .where = options.prefix.current().string(),
                       .expected = plan.current->text(),
                       .got = offered.text(),
                       .next = "choose another --prefix; if it is to take the place of the current one: "
                               "--allow-other-name"});
}

// Where no native file is tried there is nothing to waive, and a waiver would be neither used nor recorded.
void refuse_waivers_without_a_test(const ApplyOptions& options) {
  if (options.waivers.empty() || options.self_check != SelfCheckOptions::Depth::Imports) return;
  throw bundle::Error(bundle::ErrorCode::Usage, {.what = "--self-test imports tries no native file",
                                                 .where = "--waive " + options.waivers.front().path,
                                                 .expected = "--self-test full or training beside --waive",
                                                 .next = "leave one of the two out"});
}

// With --verify-store, for a bundle that is installed already: is it still what was signed?
void require_unchanged(const bundle::VerifiedBundle& bundle, const ApplyOptions& options, bundle::Progress& progress) {
  const ItemRecords records = signed_records(bundle, options.threads, progress);
  const Checkup checkup = PrefixCheckup(options.prefix, options.threads, records, progress).run();
  if (checkup.findings.empty()) return;
  const Deviation& first = checkup.findings.front();
  throw bundle::Error(bundle::ErrorCode::Digest,
                      {.what = std::to_string(checkup.findings.size()) + " things in the prefix are not as they were",
                       .where = (options.prefix.folder() / first.paths.front()).string(),
                       .expected = first.expected,
                       .got = first.got,
                       .next = "sealift-install doctor lists them; with --repair BUNDLE it puts them right"});
}

}  // namespace

Applied apply(const ApplyOptions& options, Disk& disk, bundle::Progress& progress) {
  const Prefix& prefix = options.prefix;
  refuse_waivers_without_a_test(options);
  check_prefix(prefix);
  const PrefixFilesystem filesystem = probe_prefix_filesystem(prefix, disk);
  const bundle::OpenBundle opened = open_as_asked(options);
  const Look look = look_at(opened, options);
  if (look.refusal && look.roots == look.before) std::rethrow_exception(look.refusal);

  std::error_code ignored;
  std::optional<PrefixLock> lock;  // where nothing can be written, the preflight says so, with all other failures
  if (!options.dry_run && filesystem.writable && !filesystem.mount.read_only && fs::exists(prefix.folder(), ignored))
    lock.emplace(prefix, disk, "apply");
  if (lock && bundle::trust_for_run(prefix.trust(), options.fingerprint) != look.before) {
    lock.reset();  // another run has accepted something meanwhile: look again
    return apply(options, disk, progress);
  }
  // Newer trust roots count from the moment they are seen, whatever is wrong with the bundle that brought them.
  if (lock && !look.before.root.empty()) save_trust(prefix, disk, look.roots);
  if (look.refusal) std::rethrow_exception(look.refusal);
  const bundle::VerifiedBundle& bundle = *look.bundle;

  // No other run is at work. What is mounted inside is not ours to empty, and refused below.
  if (lock && filesystem.mounted_inside.empty()) sweep(prefix, disk);
  const PlanOptions asked{.compile_bytecode = options.compile_bytecode, .additions = options.additions};
  InstallPlan plan = make_plan(bundle, prefix, disk, asked);
  refuse_other_name(plan, bundle.manifest(), options);
  std::vector<Finding> findings = preflight(bundle.manifest(), options.machine, filesystem, plan, options.now);
  refuse_failures(findings, bundle.manifest());
  if (!lock && !options.dry_run) {
    lock.emplace(prefix, disk, "apply");
    if (bundle::trust_for_run(prefix.trust(), options.fingerprint) != look.before) {
      // Another run made this prefix meanwhile: begin again.
      lock.reset();
      return apply(options, disk, progress);
    }
    plan = make_plan(bundle, prefix, disk, asked);  // another run may have filled the store
    refuse_other_name(plan, bundle.manifest(), options);
  }
  for (const std::string& warning : warnings_of(findings)) progress.note(warning);
  if (!plan.adds)
    for (const GenerationRecord::Bundle& kept : plan.record.added)
      progress.note("keeps " + words_for(kept) + ", which was added (--drop-added leaves it out)");
  if (options.dry_run) return summary_of(bundle, plan, std::move(findings));
  if (!options.waivers.empty() && plan.action != InstallPlan::Action::Install)
    progress.note("the bundle is installed already: no file was tried, and nothing waived");
  if (options.verify_store && plan.action != InstallPlan::Action::Install) require_unchanged(bundle, options, progress);

  Applied applied = summary_of(bundle, plan, std::move(findings));
  if (plan.action != InstallPlan::Action::Install) save_trust(prefix, disk, bundle.trust());
  if (plan.action == InstallPlan::Action::Nothing) {
    // The run that made it may have been killed before it synced these names.
    disk.sync_folder(prefix.generations());
    disk.sync_folder(prefix.folder());
    if (fs::exists(prefix.staging(), ignored)) Staging(prefix, disk).done();  // that run's
    applied.chunks_read = bundle.payload().chunks_checked();
    applied.mended = bundle.payload().mended();
    return applied;
  }
  Staging staging(prefix, disk);
  if (plan.action == InstallPlan::Action::Install) {
    Installed installed = install(bundle, plan, options, applied.findings, staging, disk, progress);
    applied.record = std::move(installed.record);
    applied.hashed = installed.hashed;
    applied.times = installed.times;
  }
  prepare_switch(prefix, plan.generation, staging, disk);
  point_current_at(prefix, plan.generation, staging.folder(), disk);
  staging.done();
  applied.chunks_read = bundle.payload().chunks_checked();
  applied.mended = bundle.payload().mended();
  return applied;
}

}  // namespace sealift::installer
