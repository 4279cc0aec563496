// SPDX-License-Identifier: Apache-2.0
// Space is estimated high on purpose: running out half-way costs an operator a night, a refusal at the start a minute.
// A bundle counts as installed by its identity, not by its name or version.
#include "installer/preflight/plan.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "bundle/core/shell_word.hpp"
#include "installer/prefix/require_prefix.hpp"
#include "installer/store/item_check.hpp"
#include "installer/store/store.hpp"
#include "installer/upkeep/status.hpp"

namespace sealift::installer {

using bundle::Entry;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMargin = std::uint64_t{8} << 20;
// Folder blocks and records, in the store and again in the generation: a part of a 4 KiB block for each path.
constexpr std::uint64_t kBytesForEachName = 512;
// A file takes whole blocks; thousands of tiny ones take many times their bytes.
constexpr std::uint64_t kBlock = 4096;
// How many of an entry's files are modules is known only once it is unpacked. A module compiled by Python 3.11
// takes 1.2 to 1.9 times its source; in no measured package more than 40 KB on average, and half of that over all of
// its files.
constexpr std::uint64_t kBytecodeForEachName = 32 << 10;

// The generation made from these very bundles: the current one, else the newest. One with a damaged record counts as
// another bundle's, so that it cannot block a new one; so does one whose record an older installer wrote, without what
// an addition needs: applying its bundle again writes a whole one.
std::optional<unsigned> generation_of(const GenerationRecord& record, const Status& status) {
  std::optional<unsigned> found;
  for (const Status::Generation& generation : status.generations)
    if (generation.record && same_bundles(*generation.record, record) &&
        generation.record->site_packages == record.site_packages && (!found || found != status.current))
      found = generation.number;
  return found;
}

// The entries that a delta leaves to the store, and the entries that its patches build on. They must be whole there,
// since nothing could be unpacked instead.
class AbsentEntries {
 public:
  AbsentEntries(const bundle::VerifiedBundle& bundle, const Store& store) : bundle_(bundle), store_(store) {}

  void add(const Entry& entry) {
    ++count_;
    const std::string fault = store_.has(entry) ? item_fault(store_.item(entry)) : "not there";
    if (!fault.empty()) missing_ += "\n    " + entry.path.text() + " (content " + entry.content.hex() + "): " + fault;
  }
  void add_base(const Entry& entry) {
    ++count_;
    std::error_code ignored;
    const std::filesystem::path base = store_.base(entry);
    const std::string fault = std::filesystem::exists(base / kRecordName, ignored) ? item_fault(base) : "not there";
    if (!fault.empty())
      missing_ +=
          "\n    the wheel that " + entry.path.text() + " is a patch on (content " + entry.base.hex() + "): " + fault;
  }
  void require() const {
    if (missing_.empty()) return;
    if (carries_image_alone(bundle_.manifest())) refuse_image_alone();
    throw Error(
        ErrorCode::Missing,
        {.what = "the bundle is a delta, and the store lacks some of what it builds on; nothing was written",
         .where = bundle_.folder().string(),
         .expected =
             "the " + std::to_string(count_) +
             " entries that it does not carry or patches, as in the inventory sha256:" + bundle_.manifest().base->hex(),
         .got = "these are missing:" + missing_,
         .next = "move away what is damaged and apply a bundle that carries it all first; or take the inventory of "
                 "this prefix, and have the delta packed for that"});
  }

 private:
  [[noreturn]] void refuse_image_alone() const {
    const std::string folder = bundle::shell_word(bundle_.folder().string());
    throw Error(ErrorCode::Missing,
                {.what = "the bundle carries its environment as an image alone, and nothing that could be installed",
                 .where = bundle_.folder().string(),
                 .expected = "a bundle with the wheels that the image was made of",
                 .got = "a job with [squashfs] wheels = false",
                 .next = "mount it: sealift-install mount " + folder +
                         " DIR, with the same --prefix or --fingerprint; or have it packed with the wheels"});
  }

  const bundle::VerifiedBundle& bundle_;
  const Store& store_;
  std::size_t count_ = 0;
  std::string missing_;
};

// Compiled modules belong to one generation and are not shared: one more file each, and a __pycache__ in each folder.
void add_bytecode(const Entry& entry, InstallPlan& plan) {
  if (entry.kind != bundle::EntryKind::Wheel && entry.kind != bundle::EntryKind::Tree) return;
  plan.needed_bytes += std::min(2 * entry.installed_size, kBytecodeForEachName * entry.installed_files) +
                       kBytesForEachName * entry.installed_files;
  plan.needed_inodes += entry.installed_files;
}

void sort_entries(const bundle::VerifiedBundle& bundle, const Store& store, bool bytecode, InstallPlan& plan) {
  std::set<std::string> seen;
  AbsentEntries absent(bundle, store);
  for (const bundle::Environment::Placement& placement : bundle.manifest().environment.placements) {
    const Entry* entry = bundle.manifest().find(placement.entry);
    plan.needed_bytes += kBytesForEachName * entry->installed_files;
    plan.needed_inodes += entry->installed_files;  // folders and links of the generation; hard links need none
    if (bytecode) add_bytecode(*entry, plan);
    if (!seen.insert(Store::item_name(*entry)).second) continue;
    if (entry->absent) absent.add(*entry);
    const bool there = entry->absent || store.has(*entry);
    if (!there && entry->encoding == bundle::Encoding::Patch && !store.is_staged(*entry)) absent.add_base(*entry);
    (there ? plan.reuse : plan.unpack).push_back(entry);
  }
  absent.require();
  for (const Entry* entry : plan.unpack) {
    if (store.is_staged(*entry)) continue;
    plan.needed_bytes += entry->installed_size + (kBytesForEachName + kBlock) * entry->installed_files;
    plan.needed_inodes += entry->installed_files;
  }
  plan.needed_bytes += kMargin;
  plan.needed_inodes += 64;
}

bool has_interpreter(const GenerationRecord& current, const Prefix& prefix) {
  std::error_code ignored;
  return !current.interpreter.empty() && std::filesystem::exists(prefix.current() / current.interpreter, ignored);
}

std::optional<CurrentGeneration> current_of(const Status& status, const Prefix& prefix) {
  for (const Status::Generation& generation : status.generations)
    if (generation.number == status.current && generation.record)
      return CurrentGeneration{.record = *generation.record,
                               .has_interpreter = has_interpreter(*generation.record, prefix)};
  return std::nullopt;
}

// What is kept of the current generation is not on the medium, so it must be whole in the store. Its names are counted
// as if all were kept.
void add_kept(const bundle::VerifiedBundle& bundle, const CurrentGeneration& current, const Store& store, bool bytecode,
              InstallPlan& plan) {
  std::set<std::string> carried;
  for (const bundle::Environment::Placement& placement : bundle.manifest().environment.placements)
    carried.insert(Store::item_name(*bundle.manifest().find(placement.entry)));
  std::string missing;
  bool keeps = false;
  for (const GenerationRecord::Part& part : plan.record.entries) {
    if (carried.contains(part.item)) continue;
    keeps = true;
    std::error_code ignored;
    if (!std::filesystem::exists(store.item(part.item) / kRecordName, ignored))
      missing += "\n    " + part.path + " (store item " + part.item + ")";
  }
  if (!missing.empty())
    throw Error(
        ErrorCode::Missing,
        {.what = "the store lacks some of what is kept of the current generation; nothing was written",
         .where = bundle.folder().string(),
         .expected = "all that generation " + std::to_string(current.record.number) + " consists of",
         .got = "these are missing:" + missing,
         .next = "sealift-install doctor --repair BUNDLE, of the bundle that brought them; then run this again"});
  if (!keeps) return;
  const Audit& names = current.record.audit;
  const std::uint64_t count = names.files + names.links + names.folders;
  plan.needed_bytes += kBytesForEachName * count;
  plan.needed_inodes += count;
  if (!bytecode && !plan.record.bytecode) return;
  plan.needed_bytes += std::min(2 * names.bytes, kBytecodeForEachName * names.files) + kBytesForEachName * names.files;
  plan.needed_inodes += names.files;
}

}  // namespace

std::string_view name_of(InstallPlan::Action action) {
  return action == InstallPlan::Action::Install    ? "install"
         : action == InstallPlan::Action::SwitchTo ? "switch"
                                                   : "nothing";
}

InstallPlan make_plan(const bundle::VerifiedBundle& bundle, const Prefix& prefix, const Disk& disk,
                      const PlanOptions& options) {
  InstallPlan plan{.adds = options.additions == Additions::Add, .free = disk.free_space(prefix.folder())};
  const Status status = is_prefix(prefix) ? status_of(prefix) : Status{};
  const std::optional<CurrentGeneration> current = current_of(status, prefix);
  plan.record = composed(bundle, current, options.additions);
  if (current) {
    plan.current = {.channel = current->record.channel, .name = current->record.name};
    plan.loses_interpreter = current->has_interpreter && !brings_interpreter(bundle.manifest());
  }
  if (const std::optional<unsigned> same = generation_of(plan.record, status)) {
    plan.action = same == status.current ? InstallPlan::Action::Nothing : InstallPlan::Action::SwitchTo;
    plan.generation = *same;
    return plan;
  }
  if (!status.generations.empty()) plan.generation = status.generations.back().number + 1;
  sort_entries(bundle, Store(prefix), options.compile_bytecode, plan);
  if (current) add_kept(bundle, *current, Store(prefix), options.compile_bytecode, plan);
  return plan;
}

}  // namespace sealift::installer
