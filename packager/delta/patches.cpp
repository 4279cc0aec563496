// SPDX-License-Identifier: Apache-2.0
// The wheel that was sent comes from the cache, and is hashed before anything is built on it; see patches.hpp.
#include "packager/delta/patches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/wheel/wheel_patch.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

// Why this wheel cannot be built on; empty when it can.
std::string fault_of_sent(const SentWheel& sent, const Cache& cache) {
  const fs::path file = cache.path(sent.sha256);
  if (!cache.contains(sent.sha256)) return "is not in the cache";
  return digest_of_file(file) == sent.sha256 ? "" : "is damaged in the cache";
}

std::optional<bundle::WheelPatch> patch_entry(const PlannedEntry& entry, const SentWheel& sent, const Base& base,
                                              const Patching& patching, const fs::path& out, const Repair& repair,
                                              bundle::Progress& progress) {
  std::uint64_t told = 0;
  const auto tell = [&](std::uint64_t bytes) {
    bundle::stop_if_interrupted();
    progress.add(bytes);
    told += bytes;
  };
  const auto made = read_repaired(entry.content, repair, [&] {
    progress.take_back(std::exchange(told, 0));
    fs::remove(out);
    bundle::FileSource wheel(fs::canonical(entry.file)), before(patching.cache.path(sent.sha256));
    return bundle::make_wheel_patch(
        {.source = wheel, .file_name = entry.content.owner, .allowed_startup_files = entry.content.startup_files},
        {.source = before, .file_name = sent.file_name, .allowed_startup_files = base.sent->startup_files},
        patching.scratch, out, tell);
  });
  progress.add(entry.draft.size - std::min(told, entry.draft.size));
  return made;
}

}  // namespace

std::size_t make_patches(PackPlan& plan, const Base& base, const Patching& patching, const Repair& repair,
                         bundle::Progress& progress) {
  std::vector<std::pair<PlannedEntry*, const SentWheel*>> work;
  std::uint64_t bytes = 0;
  for (PlannedEntry& entry : plan.entries)
    if (const SentWheel* sent = sent_version_of(entry, base); sent != nullptr && !entry.draft.absent) {
      work.emplace_back(&entry, sent);
      bytes += entry.draft.size;
    }
  if (work.empty()) return 0;
  std::size_t count = 0;
  std::uint64_t whole = 0, carried = 0;
  progress.begin("making patches", bytes);
  for (const auto& [entry, sent] : work) {
    const std::string& name = entry->content.owner;
    if (const std::string fault = fault_of_sent(*sent, patching.cache); !fault.empty()) {
      progress.warn(fmt::format("{} is carried whole, since {}, which was sent, {}", name, sent->file_name, fault));
      progress.skip(entry->draft.size);
      continue;
    }
    const fs::path out = patching.scratch / std::to_string(count);
    const auto made = patch_entry(*entry, *sent, base, patching, out, repair, progress);
    if (!made) continue;
    entry->draft.encoding = bundle::Encoding::Patch;
    entry->draft.base = sent->content;
    entry->draft.stored_size = made->size;
    entry->draft.stored_sha256 = made->sha256;
    entry->stored = out;
    ++count;
    whole += entry->draft.size;
    carried += made->size;
  }
  progress.end();
  progress.note(fmt::format("{} of {} changed wheels are carried as patches: {} instead of {}", count, work.size(),
                            bundle::human_size(carried), bundle::human_size(whole)));
  return count;
}

}  // namespace sealift::packager
