// SPDX-License-Identifier: Apache-2.0
// Chunks of no entry (tar headers, the image's index) are read as well: a bundle is whole or it is refused, even when
// the damaged byte would never have been used.
#include "installer/store/unpack.hpp"

#include <algorithm>

#include "installer/store/unpack_tree.hpp"
#include "installer/store/unpack_wheel.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

using bundle::Entry;
using bundle::EntryKind;

namespace {

// The signed sizes, plus an allowance for the item's own folders and for the first lines of scripts.
ItemWriter::Limit limit_of(const Entry& entry) {
  constexpr std::uint64_t kOwnNames = 16, kOwnBytes = std::uint64_t{64} << 10;
  return {.bytes = entry.installed_size + kOwnBytes, .names = entry.installed_files + kOwnNames};
}

// In payload order, so that neighbours use the chunk they share while it is in memory. Entries so large that reading
// two chunks again does not matter go first, the largest before the others, so that no thread is left alone with one at
// the end: a wheel of 120 MB takes a second.
void put_in_order(std::vector<const Entry*>& entries, std::uint64_t chunk_size) {
  constexpr std::uint64_t kManyChunks = 30;
  const auto order = [&](const Entry* entry) {
    const bool large = entry->stored_size >= kManyChunks * chunk_size;
    return std::pair(large ? ~entry->installed_size : ~std::uint64_t{0}, entry->offset);
  };
  std::sort(entries.begin(), entries.end(), [&](auto* a, auto* b) { return order(a) < order(b); });
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

}  // namespace

Unpacked unpack_entry(const bundle::VerifiedBundle& bundle, const Entry& entry, const std::filesystem::path& folder,
                      Disk& disk, bundle::Progress& progress) {
  const std::string& path = entry.path.text();
  ItemWriter writer(disk, folder,
                    {.kind = entry.kind, .name = path.substr(path.rfind('/') + 1), .content = entry.content},
                    limit_of(entry), progress);
  if (entry.kind == EntryKind::Wheel) {
    unpack_wheel(bundle, entry, writer);
  } else if (entry.kind == EntryKind::Tree) {
    unpack_tree(bundle, entry, writer);
  } else {
    writer.add_file(std::string(kFileName), entry.executable, entry.sha256,
                    [&](const bundle::ByteSink& sink) { bundle.stream(entry, sink); });
  }
  writer.finish();
  return {.record = writer.record_digest(), .stamps = writer.take_stamps()};
}

void unpack_all(const bundle::VerifiedBundle& bundle, std::vector<const Entry*> entries, const Prefix& prefix,
                const std::filesystem::path& staging, Disk& disk, unsigned threads, bundle::Progress& progress,
                Stamps& stamps) {
  // Discs that are put in one after the other are read in order and by one thread, so that each is asked for once.
  const bool disc_by_disc = !bundle.payload().all_there();
  if (disc_by_disc) threads = 1;
  if (!disc_by_disc) check_chunks_of_no_entry(bundle);
  const Store store(prefix);
  std::erase_if(entries, [&](const Entry* entry) {
    const bool staged = store.is_staged(*entry);
    if (staged) progress.add(entry->installed_size);
    return staged;
  });
  if (disc_by_disc)
    std::sort(entries.begin(), entries.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  else
    put_in_order(entries, bundle.payload().payload().chunk_size);
  for (const Entry* entry : entries) bundle.expect(*entry);
  Finisher finisher(disk, prefix);
  std::exception_ptr failure;
  try {
    bundle::parallel_for(threads, entries.size(), [&](std::size_t index) {
      const Entry& entry = *entries[index];
      const std::filesystem::path staged = staging / Store::item_name(entry);
      Unpacked made = unpack_entry(bundle, entry, staged, disk, progress);
      stamps.add(Store::item_name(entry), made.record, std::move(made.stamps));
      finisher.add(staged, Store::item_name(entry), entry.installed_size);
    });
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    finisher.flush();  // after a failure too, so that good items need not be read from the medium again
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
  if (disc_by_disc) check_chunks_of_no_entry(bundle);
}

}  // namespace sealift::installer
