// SPDX-License-Identifier: Apache-2.0
// Order: lock -> trust -> seal -> sweep -> plan -> preflight, and only then the first write, but for newer roots,
// which a site takes in even when it then refuses their bundle. A prefix that is not there is made after the preflight
// was passed, so a refusal leaves no trace.
#include "installer/verbs/apply.hpp"

#include <future>
#include <thread>

#include "installer/generations/activation.hpp"
#include "installer/trial/bytecode.hpp"
#include "installer/generations/failed_generation.hpp"
#include "installer/layout/generation_builder.hpp"
#include "installer/host/host_name.hpp"
#include "installer/prefix/lock.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/host/time.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/store/unpack.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// This run's folder in staging. A failure leaves only the finished items there, for the next try; success nothing.
class Staging {
 public:
  Staging(const Prefix& prefix, Disk& disk)
      : prefix_(prefix), disk_(disk), folder_(prefix.staging() / std::to_string(::getpid())) {
    disk_.make_folder(prefix.staging());
    disk_.make_folder(prefix.staged_items());
    disk_.make_folder(folder_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() {
    try {
      const fs::path items = prefix_.staged_items();
      if (done_ && !fs::is_empty(items)) discard(items, folder_ / "items", disk_);  // of other bundles
      sweep(prefix_, disk_);
    } catch (const std::exception&) {  // the next run's sweep finds it
    }
  }
  const fs::path& folder() const { return folder_; }
  void done() { done_ = true; }

 private:
  const Prefix& prefix_;
  Disk& disk_;
  fs::path folder_;
  bool done_ = false;
};

std::vector<std::string> paths_of(const std::vector<const bundle::Entry*>& entries) {
  std::vector<std::string> paths;
  for (const bundle::Entry* entry : entries) paths.push_back(entry->path.text());
  return paths;
}

Applied summary_of(const bundle::VerifiedBundle& bundle, const Plan& plan, std::vector<Finding> findings) {
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

// The new generation below `root`. One thread reads the records ahead, this one lays out, the others make names: what
// is refused then lies in staging and goes with it.
Layout make_generation(const bundle::VerifiedBundle& bundle, const Store& store, const fs::path& root, Disk& disk,
                       unsigned threads) {
  const bundle::Environment& environment = bundle.manifest().environment;
  std::vector<const bundle::Entry*> entries;
  for (const bundle::Environment::Placement& placement : environment.placements)
    entries.push_back(bundle.manifest().find(placement.entry));
  std::vector<std::promise<ItemRecord>> records(entries.size());
  const std::jthread reader([&] {
    for (std::size_t i = 0; i < entries.size(); ++i) try {
        records[i].set_value(store.record(*entries[i]));
      } catch (...) {
        records[i].set_exception(std::current_exception());
      }
  });
  LayoutMaker maker(environment);
  GenerationBuilder builder(root, disk, threads);
  const NewName build = [&builder](const Layout::value_type& name) { builder.add(name); };
  for (std::size_t i = 0; i < entries.size(); ++i)
    maker.add({.entry = entries[i],
               .into = environment.placements[i].into,
               .item = store.item(*entries[i]),
               .record = records[i].get_future().get(),
               .left_out = environment.placements[i].left_out},
              build);
  Layout layout = maker.finish(build);
  builder.finish();
  return layout;
}

std::uint64_t bytes_of(const std::vector<const bundle::Entry*>& entries) {
  std::uint64_t bytes = 0;
  for (const bundle::Entry* entry : entries) bytes += entry->installed_size;
  return bytes;
}

GenerationRecord record_of(const bundle::VerifiedBundle& bundle, const Plan& plan) {
  GenerationRecord record{.number = plan.generation,
                          .name = bundle.manifest().name,
                          .version = bundle.manifest().version,
                          .channel = bundle.manifest().channel,
                          .created = bundle.manifest().created,
                          .identity = bundle.identity(),
                          .signers = bundle.signers(),
                          .root = bundle.root_name(),
                          .interpreter = bundle.manifest().environment.interpreter.text(),
                          .site_packages = bundle.manifest().environment.site_packages.text()};
  for (const bundle::Environment::Placement& placement : bundle.manifest().environment.placements)
    record.entries.push_back({.path = placement.entry.text(),
                              .item = Store::item_name(*bundle.manifest().find(placement.entry)),
                              .into = placement.into,
                              .left_out = placement.left_out});
  return record;
}

GenerationRecord install(const bundle::VerifiedBundle& bundle, const Plan& plan, const ApplyOptions& options,
                         const std::vector<Finding>& findings, const Staging& staging, Disk& disk, Progress& progress) {
  const Prefix& prefix = options.prefix;
  const bundle::Environment& environment = bundle.manifest().environment;
  if (!plan.unpack.empty()) progress.begin("unpacking", bytes_of(plan.unpack));
  unpack_all(bundle, plan.unpack, prefix, staging.folder(), disk, options.threads, progress);
  if (!plan.unpack.empty()) progress.end();

  // Beyond this point every byte of the bundle was verified; only now is anything but staging touched.
  disk.make_folder(prefix.store());
  disk.make_folder(prefix.generations());
  publish(plan.unpack, prefix, disk);

  progress.say("building generation " + Prefix::generation_name(plan.generation));
  const fs::path root = staging.folder() / "generation";
  const Layout layout = make_generation(bundle, Store(prefix), root, disk, options.threads);
  GenerationRecord record = record_of(bundle, plan);
  {  // the disk writes while this reads; what is made from here on is synced before the generation gets its name
    std::future<void> written = std::async(std::launch::async, [&] { disk.sync_all(root); });
    record.audit = audit_generation(layout, environment, root, options.threads);
    written.get();
  }

  const fs::path scratch = staging.folder() / "scratch";
  disk.make_folder(scratch);
  if (options.compile_bytecode) progress.say("compiling bytecode");
  try {
    if (options.compile_bytecode) compile_bytecode(environment, layout, root, scratch, options.threads);
    progress.say("self-test");
    record.self_test = self_test(environment, layout, root, scratch,
                                 {.depth = options.self_test, .arch = bundle.manifest().target.arch});
  } catch (const bundle::Error& error) {
    keep_failed(prefix, record, root, error, staging.folder(), disk);
    throw;
  }

  record.bytecode = options.compile_bytecode;
  record.installed = now_utc();
  record.host = host_name();
  record.preflight = warnings_of(findings);
  disk.write_new(root / bundle::kGenerationRecord, write_generation_record(record), 0444);
  save_trust(prefix, disk, bundle.trust());  // before it has a name: what is installed is never forgotten
  publish_generation(prefix, plan.generation, root, disk);
  return record;
}

// What lies beside a generation that is about to be current. Also for one that is there already: the run that made it
// may have been killed before this.
void prepare_switch(const Prefix& prefix, unsigned number, const Staging& staging, Disk& disk) {
  const GenerationRecord record = read_generation_record(prefix.generation(number), number);
  SmallFiles files = receipt_files(record, prefix);
  for (auto& file : activation_files(prefix, record.name)) files.push_back(std::move(file));
  replace_small_files(files, prefix, staging.folder(), disk);
  forget_failed(prefix, disk);  // what is said there no longer holds
}

// Newer roots count from the moment they were seen, whatever is wrong with the bundle that brought them.
void take_in_roots(const bundle::OpenBundle& opened, bundle::TrustState& state, const Prefix& prefix, Disk& disk) {
  const std::string where = opened.seal_path.string();
  state = accept_roots(std::move(state), bundle::read_root_chain(opened.seal.roots, where), where);
  save_trust(prefix, disk, state);
}

}  // namespace

Applied apply(const ApplyOptions& options, Disk& disk, Progress& progress) {
  const Prefix& prefix = options.prefix;
  check_prefix(prefix);
  const Ground ground = look_at_ground(prefix, disk);
  std::error_code ignored;
  std::optional<PrefixLock> lock;  // where nothing can be written the preflight says why, with all else that is wrong
  if (!options.dry_run && ground.writable && !ground.mount.read_only && fs::exists(prefix.root(), ignored))
    lock.emplace(prefix, disk, "apply");

  bundle::OpenBundle opened = bundle::open(options.bundle);
  opened.more_folders = options.volumes;
  opened.read_once = true;
  if (!options.dry_run) opened.ask = options.ask;
  bundle::Trust trust{.state = bundle::trust_for_run(prefix.trust(), options.fingerprint),
                      .allow_downgrade = options.allow_downgrade};
  if (lock && !trust.state.root.empty()) take_in_roots(opened, trust.state, prefix, disk);
  const bundle::VerifiedBundle bundle = bundle::verify(opened, trust, options.now);

  if (lock) sweep(prefix, disk);  // nobody else is at work
  Plan plan = make_plan(bundle, prefix, disk, options.compile_bytecode);
  std::vector<Finding> findings = preflight(bundle.manifest(), options.machine, ground, plan, options.now);
  refuse_failures(findings, bundle.manifest());
  if (!lock && !options.dry_run) {
    lock.emplace(prefix, disk, "apply");
    if (bundle::trust_for_run(prefix.trust(), options.fingerprint) != trust.state) {
      // Somebody else made this prefix while we looked: look again, with the lock from the beginning.
      lock.reset();
      return apply(options, disk, progress);
    }
    plan = make_plan(bundle, prefix, disk, options.compile_bytecode);  // they may have come no further than the store
  }
  for (const std::string& warning : warnings_of(findings)) progress.say(warning);
  if (options.dry_run) return summary_of(bundle, plan, std::move(findings));

  Applied applied = summary_of(bundle, plan, std::move(findings));
  if (plan.action != Plan::Action::Install) save_trust(prefix, disk, bundle.trust());
  if (plan.action == Plan::Action::Nothing) {
    // Perhaps by a run that was killed before it could say so to the disk, and then nobody was told that it is done.
    disk.sync_folder(prefix.generations());
    disk.sync_folder(prefix.root());
    if (fs::exists(prefix.staging(), ignored)) Staging(prefix, disk).done();  // that run's
    return applied;
  }
  Staging staging(prefix, disk);
  if (plan.action == Plan::Action::Install)
    applied.record = install(bundle, plan, options, applied.findings, staging, disk, progress);
  prepare_switch(prefix, plan.generation, staging, disk);
  point_current_at(prefix, plan.generation, staging.folder(), disk);
  staging.done();
  return applied;
}

}  // namespace sealift::installer
