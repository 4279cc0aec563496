// SPDX-License-Identifier: Apache-2.0
// Order: unpack -> publish the store items -> build -> audit -> compile -> self-check -> record -> name -> stamps. A
// failed self-check keeps what was built in PREFIX/failed, for a person who looks for the reason.
#include "installer/apply/install.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <thread>

#include "installer/generations/failed_generation.hpp"
#include "installer/generations/generation.hpp"
#include "installer/host/host_name.hpp"
#include "installer/host/time.hpp"
#include "installer/layout/generation_builder.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/store/signed_records.hpp"
#include "installer/store/unpack.hpp"
#include "installer/trial/bytecode.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// The entries that make the generation: the bundle's, and, of what is kept of the current generation, made up again
// from the store's records, with the fields that a layout reads.
class Entries {
 public:
  Entries(const bundle::VerifiedBundle& bundle, const GenerationRecord& record, const Store& store) {
    for (const GenerationRecord::Part& part : record.entries) {
      const bundle::SafePath path = bundle::SafePath::parse(part.path, "entries");
      const bundle::Entry* entry = bundle.manifest().find(path);
      if (entry == nullptr || Store::item_name(*entry) != part.item) entry = kept(path, store.item(part.item));
      entries_.push_back(entry);
    }
  }
  std::size_t size() const { return entries_.size(); }
  const bundle::Entry* operator[](std::size_t i) const { return entries_[i]; }

 private:
  const bundle::Entry* kept(const bundle::SafePath& path, const fs::path& item) {
    const ItemRecord record = read_item_record(item / kRecordName);
    kept_.push_back({.path = path,
                     .kind = record.kind,
                     .executable = item.filename().string().ends_with("-program"),
                     .content = record.content});
    return &kept_.back();
  }

  std::vector<const bundle::Entry*> entries_;
  std::deque<bundle::Entry> kept_;
};

// Builds the new generation in `folder`. One thread reads the item records ahead, this one lays out, the others make
// names. A layout that is refused leaves some names behind, in staging, which is removed.
std::pair<Layout, std::uint64_t> make_generation(const Entries& entries, const GenerationRecord& record,
                                                 const bundle::Environment& environment, const Store& store,
                                                 Stamps& stamps, const fs::path& folder, Disk& disk, unsigned threads) {
  std::vector<std::promise<ItemRecord>> records(entries.size());
  std::vector<std::jthread> reader;
  const auto read_all = [&] {
    for (std::size_t i = 0; i < entries.size(); ++i) try {
        records[i].set_value(stamps.record_of(store, *entries[i]));
      } catch (...) {
        records[i].set_exception(std::current_exception());
      }
  };
  bundle::start_threads(reader, 1, read_all);
  if (reader.empty()) read_all();
  LayoutMaker maker(environment);
  constexpr unsigned kNamers = 10;  // one folder takes one name at a time, so more of them would wait for each other
  GenerationBuilder builder(folder, disk, std::min(threads, kNamers));
  const NewName build = [&builder](const Layout::value_type& name) { builder.add(name); };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const GenerationRecord::Part& part = record.entries[i];
    UnpackedEntry unpacked{.entry = entries[i],
                           .into = part.into,
                           .item = store.item(part.item),
                           .record = records[i].get_future().get(),
                           .left_out = part.left_out,
                           .shared = part.shared};
    // Which files its own bundle allowed is not kept; they were judged when that was installed.
    if (!environment.placements.empty()) unpacked.startup = startup_of(environment, unpacked);
    maker.add(std::move(unpacked), build);
  }
  Layout layout = maker.finish(build);
  builder.finish();
  return {std::move(layout), builder.hashed()};
}

// Reads again what the bundle carries of the reused items, and holds their records to it: then a record that was
// changed together with its files, by somebody who may write here, is found as well.
void hold_records_to_bundle(const bundle::VerifiedBundle& bundle, const std::vector<const bundle::Entry*>& reused,
                            const Store& store, unsigned threads, bundle::Progress& progress) {
  std::map<std::string, const bundle::Entry*> carried;
  for (const bundle::Entry* entry : reused)
    if (!entry->absent) carried.emplace(Store::item_name(*entry), entry);
  for (auto& [name, expected] : signed_records(bundle, carried, threads, progress)) {
    const ItemRecord record = store.record(*carried.at(name));
    expected.name = record.name;  // another bundle may have given the same bytes another name
    if (record != expected)
      throw bundle::Error(bundle::ErrorCode::Digest,
                          {.what = "the record of a store item is not what the signed entry unpacks to",
                           .where = (store.item(*carried.at(name)) / kRecordName).string(),
                           .next = "sealift-install doctor --repair BUNDLE; then run this again"});
  }
}

// The stamps that count for this run: what is unpacked anew gets new ones.
Stamps stamps_for(const InstallPlan& plan, const ApplyOptions& options) {
  Stamps stamps = Stamps::read(options.prefix);
  for (const bundle::Entry* entry : plan.unpack) stamps.forget(Store::item_name(*entry));
  if (options.verify_store) stamps.hash_all_again();
  return stamps;
}

std::uint64_t bytes_of(const std::vector<const bundle::Entry*>& entries) {
  std::uint64_t bytes = 0;
  for (const bundle::Entry* entry : entries) bytes += entry->installed_size;
  return bytes;
}

// Two bundles that want one path: whose job has to give way is known here, and not where the path is claimed.
[[noreturn]] void refuse_beside_added(const bundle::Error& error, bool adds) {
  bundle::Facts facts = error.facts();
  if (!facts.next.empty()) facts.next += "; ";
  facts.next += way_beside_added(adds);
  throw bundle::Error(error.code(), std::move(facts));
}

FailedGeneration failure_of(const bundle::VerifiedBundle& bundle, const InstallPlan& plan, const bundle::Error& error) {
  return {.number = plan.generation,
          .name = bundle.manifest().name,
          .version = bundle.manifest().version,
          .identity = bundle.identity(),
          .added_to = plan.adds ? words_for(bundles_of(plan.record).front()) : "",
          .failed = now_utc(),
          .where = error.facts().where,
          .got = error.facts().got};
}

// Milliseconds since it was made, or since it was asked last.
class Clock {
 public:
  std::uint64_t lap() {
    const auto now = std::chrono::steady_clock::now();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now - began_).count();
    began_ = now;
    return static_cast<std::uint64_t>(took);
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

Installed install(const bundle::VerifiedBundle& bundle, const InstallPlan& plan, const ApplyOptions& options,
                  const std::vector<Finding>& findings, const Staging& staging, Disk& disk,
                  bundle::Progress& progress) {
  const Prefix& prefix = options.prefix;
  GenerationRecord record = plan.record;
  record.number = plan.generation;
  record.bytecode = record.bytecode || options.compile_bytecode;
  const bundle::Environment environment = environment_of(bundle, record);
  Stamps stamps = stamps_for(plan, options);
  if (options.verify_store) hold_records_to_bundle(bundle, plan.reuse, Store(prefix), options.threads, progress);
  InstallTimes times;
  Clock clock;
  if (!plan.unpack.empty()) progress.begin("unpacking", bytes_of(plan.unpack));
  unpack_all(bundle, plan.unpack, prefix, staging.folder(), disk, options.threads, progress, stamps);
  if (!plan.unpack.empty()) progress.end();

  // From here on every byte of the bundle is verified; until now only staging was touched.
  disk.make_folder(prefix.store());
  disk.make_folder(prefix.generations());
  publish(plan.unpack, prefix, disk);
  times.unpack = clock.lap();

  progress.note("building generation " + Prefix::generation_name(plan.generation));
  const fs::path folder = staging.folder() / "generation";
  const auto build = [&] {
    try {
      return make_generation(Entries(bundle, record, Store(prefix)), record, environment, Store(prefix), stamps, folder,
                             disk, options.threads);
    } catch (const bundle::Error& error) {
      if (error.code() != bundle::ErrorCode::Conflict || record.added.empty()) throw;
      refuse_beside_added(error, plan.adds);
    }
  };
  const auto [layout, hashed] = build();
  {  // the disk writes while the audit reads, or behind it where there is no thread for that; what is made later is
     // synced before the generation gets its name
    std::future<void> written = std::async(std::launch::async | std::launch::deferred, [&] { disk.sync_all(folder); });
    record.audit = audit_generation(layout, environment, folder, options.threads);
    written.get();
  }

  times.build = clock.lap();

  const fs::path scratch = staging.folder() / "scratch";
  disk.make_folder(scratch);
  if (record.bytecode) progress.note("compiling bytecode");
  try {
    if (record.bytecode) compile_bytecode(environment, layout, folder, scratch, options.threads);
    progress.note("self-test");
    record.self_check = self_check(environment, layout, folder, scratch,
                                   {.depth = options.self_check,
                                    .arch = bundle.manifest().target.arch,
                                    .threads = options.threads,
                                    .waivers = options.waivers});
    times.self_test = clock.lap();
  } catch (const bundle::Error& error) {
    if (error.code() != bundle::ErrorCode::Usage)  // a mistyped waiver is no fault of what was built
      keep_failed(prefix, failure_of(bundle, plan, error), folder, staging.folder(), disk);
    throw;
  }

  record.installed = now_utc();
  record.host = host_name();
  record.preflight = warnings_of(findings);
  for (const bundle::MendedVolume& volume : bundle.payload().mended()) {
    std::erase_if(record.mended, [&](const bundle::MendedVolume& known) { return known.name == volume.name; });
    record.mended.push_back(volume);
  }
  disk.write_new(folder / bundle::kGenerationRecord, write_generation_record(record), 0444);
  save_trust(prefix, disk,
             bundle.trust());  // before the generation has a name: an installed version is never forgotten
  publish_generation(prefix, plan.generation, folder, disk);
  std::error_code ignored;
  if (fs::exists(prefix.failed(), ignored)) stamps.follow_links(prefix, true);  // what was written to keeps no stamp
  if (forget_failed(prefix, disk)) stamps.follow_links(prefix);                 // it has lost names
  stamps.save(prefix, staging.folder(), disk);
  return {.record = std::move(record), .times = times, .hashed = hashed};
}

}  // namespace sealift::installer
