// SPDX-License-Identifier: Apache-2.0
// Which reader a kind of entry has; a tree and a wheel know for themselves what they become.
#include "installer/store/unpack_entry.hpp"

#include "installer/store/unpack_tree.hpp"
#include "installer/store/unpack_wheel.hpp"

namespace sealift::installer {

using bundle::Entry;
using bundle::EntryKind;

namespace {

// The signed sizes, plus an allowance for the item's own folders and for the first lines of scripts.
ItemWriter::Limit limit_of(const Entry& entry) {
  constexpr std::uint64_t kOwnNames = 16, kOwnBytes = std::uint64_t{64} << 10;
  return {.bytes = entry.installed_size + kOwnBytes, .names = entry.installed_files + kOwnNames};
}

}  // namespace

ItemWriter item_writer(const Entry& entry, const std::filesystem::path& folder, Disk& disk,
                       bundle::Progress& progress) {
  const std::string& path = entry.path.text();
  return ItemWriter(disk, folder,
                    {.kind = entry.kind, .name = path.substr(path.rfind('/') + 1), .content = entry.content},
                    limit_of(entry), progress);
}

Unpacked unpack_entry(const bundle::VerifiedBundle& bundle, const Entry& entry, const std::filesystem::path& folder,
                      Disk& disk, bundle::Progress& progress, const Store* store) {
  ItemWriter writer = item_writer(entry, folder, disk, progress);
  if (entry.kind == EntryKind::Wheel) {
    unpack_wheel(bundle, entry, writer, store);
  } else if (entry.kind == EntryKind::Tree) {
    unpack_tree(bundle, entry, writer);
  } else {
    writer.add_file(std::string(kFileName), entry.executable, entry.sha256,
                    [&](const bundle::ByteSink& sink) { bundle.stream(entry, sink); });
  }
  writer.finish();
  return {.record = writer.record_digest(), .stamps = writer.take_stamps()};
}

}  // namespace sealift::installer
