// SPDX-License-Identifier: Apache-2.0
// Chunks of no entry (tar headers, the image's index) are read as well: a bundle is whole or it is refused, even when
// the damaged byte would never have been used.
#include "installer/store/unpack.hpp"

#include <algorithm>

#include "installer/store/shared_wheel.hpp"
#include "installer/store/work_queue.hpp"

namespace sealift::installer {

using bundle::Entry;
using bundle::EntryKind;

namespace {

// 256 MiB less what is there once: chunks read ahead and kept (payload_reader.cpp), records, the program.
constexpr std::uint64_t kMemory = std::uint64_t{144} << 20;

// What a patched wheel keeps: its head, and the window of one patch. What it builds on is mapped.
constexpr std::uint64_t kPatchMemory = std::uint64_t{50} << 20;

// Of a thread that keeps `range` bytes of chunks, one at least: these, FileOutput, and what inflating needs.
std::uint64_t memory_for(const bundle::VerifiedBundle& bundle, std::uint64_t range) {
  constexpr std::uint64_t kOutput = std::uint64_t{5} << 20;
  return std::max(range, bundle.payload().payload().chunk_size) + kOutput;
}

void check_chunks_of_no_entry(const bundle::VerifiedBundle& bundle) {
  const bundle::ChunkLayout& layout = bundle.payload().layout();
  std::vector<bool> covered(static_cast<std::size_t>(layout.count()), false);
  for (const Entry& entry : bundle.manifest().entries)
    if (!entry.absent)
      for (std::uint64_t index = layout.from(entry.offset); index < layout.from(entry.offset + entry.stored_size);
           ++index)
        covered[static_cast<std::size_t>(index)] = true;
  bundle::ChunkBuffer memory;
  for (std::size_t index = 0; index < covered.size(); ++index)
    if (!covered[index]) memory = bundle.payload().chunk(index, std::move(memory));
}

// What nobody had a use for: a wheel's own INSTALLER, a signature of its RECORD.
void check_unread_chunks(const bundle::VerifiedBundle& bundle, const std::vector<const Entry*>& entries) {
  const bundle::ChunkLayout& layout = bundle.payload().layout();
  bundle::ChunkBuffer memory;
  for (const Entry* entry : entries)
    for (std::uint64_t index = layout.from(entry->offset); index < layout.from(entry->offset + entry->stored_size);
         ++index)
      if (!bundle.payload().has_checked(index)) memory = bundle.payload().chunk(index, std::move(memory));
}

}  // namespace

unsigned threads_within_memory(const bundle::VerifiedBundle& bundle, unsigned threads) {
  const std::uint64_t fit = kMemory / memory_for(bundle, bundle::kRangeMemory);
  return std::min(threads, static_cast<unsigned>(fit));
}

namespace {

// One run of unpack_all: entries become items that wait in staging under their names.
class Unpacking {
 public:
  Unpacking(const bundle::VerifiedBundle& bundle, const Prefix& prefix, const std::filesystem::path& staging,
            Disk& disk, bundle::Progress& progress, Stamps& stamps)
      : bundle_(bundle),
        store_(prefix),
        staging_(staging),
        disk_(disk),
        progress_(progress),
        stamps_(stamps),
        finisher_(disk, prefix) {}

  void in_order(const std::vector<const Entry*>& entries) {
    for (const Entry* entry : entries) unpack_whole(*entry);
  }

  void together(const std::vector<const Entry*>& entries, unsigned threads) {
    for (const Entry* entry : entries) {
      const bool patch = entry->encoding == bundle::Encoding::Patch;
      const bool shared = !patch && is_large(*entry) && entry->kind == EntryKind::Wheel;
      queue_.add(order_of(*entry), memory_for(bundle_, bundle::kRangeMemory) + (patch ? kPatchMemory : 0),
                 [this, entry, shared] { shared ? open_shared(*entry) : unpack_whole(*entry); });
    }
    queue_.run(threads);
  }

  void name_finished() { finisher_.flush(); }

 private:
  // Large entries go first, the largest before the others. The rest follows in payload order, as the medium reads.
  bool is_large(const Entry& entry) const {
    constexpr std::uint64_t kManyChunks = 30;
    return entry.stored_size >= kManyChunks * bundle_.payload().payload().chunk_size;
  }
  WorkOrder order_of(const Entry& entry) const {
    const bool large = is_large(entry) || entry.encoding == bundle::Encoding::Patch;
    return {.whole = large ? entry.installed_size : 0, .part = 0, .place = entry.offset};
  }

  std::filesystem::path folder_of(const Entry& entry) const { return staging_ / Store::item_name(entry); }

  void unpack_whole(const Entry& entry) {
    finish(entry, unpack_entry(bundle_, entry, folder_of(entry), disk_, progress_, &store_));
  }

  // A wheel's files come before other wheels; of them, large ones before runs of small ones.
  void open_shared(const Entry& entry) {
    const auto wheel = std::make_shared<SharedWheel>(bundle_, entry, folder_of(entry), disk_, progress_);
    for (const ClaimedWheel::Part& part : wheel->parts()) {
      WorkOrder order = order_of(entry);
      order.part = part.count == 1 ? part.size : 0;
      order.place += part.offset;
      queue_.add(order, memory_for(bundle_, 0), [this, wheel, &part] {
        wheel->unpack(part);
        if (wheel->is_last()) finish(wheel->entry(), wheel->finish());
      });
    }
  }

  void finish(const Entry& entry, Unpacked made) {
    stamps_.add(Store::item_name(entry), made.record, std::move(made.stamps));
    finisher_.add(folder_of(entry), Store::item_name(entry), entry.installed_size);
  }

  const bundle::VerifiedBundle& bundle_;
  const Store store_;
  const std::filesystem::path& staging_;
  Disk& disk_;
  bundle::Progress& progress_;
  Stamps& stamps_;
  Finisher finisher_;
  WorkQueue queue_{kMemory};
};

}  // namespace

void unpack_all(const bundle::VerifiedBundle& bundle, std::vector<const Entry*> entries, const Prefix& prefix,
                const std::filesystem::path& staging, Disk& disk, unsigned threads, bundle::Progress& progress,
                Stamps& stamps) {
  // Discs that are put in one after the other are read in order and by one thread, so that each is asked for once.
  const bool disc_by_disc = !bundle.payload().all_there();
  if (!disc_by_disc) check_chunks_of_no_entry(bundle);
  const Store store(prefix);
  std::erase_if(entries, [&](const Entry* entry) {
    const bool staged = store.is_staged(*entry);
    if (staged) progress.add(entry->installed_size);
    return staged;
  });
  std::sort(entries.begin(), entries.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (const Entry* entry : entries) bundle.expect(*entry);
  Unpacking unpacking(bundle, prefix, staging, disk, progress, stamps);
  std::exception_ptr failure;
  try {
    disc_by_disc ? unpacking.in_order(entries) : unpacking.together(entries, threads);
    check_unread_chunks(bundle, entries);
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    unpacking.name_finished();  // after a failure too, so that good items need not be read from the medium again
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
  if (disc_by_disc) check_chunks_of_no_entry(bundle);
}

}  // namespace sealift::installer
