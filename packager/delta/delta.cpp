// SPDX-License-Identifier: Apache-2.0
// Marks entries of a plan; see delta.hpp.
#include "packager/delta/delta.hpp"

#include <fmt/format.h>

#include "sealift/bundle/bundle_writer.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace {

// What names this entry in a store: bytes that were read, or whose chunks are known for their SHA-256.
bundle::Digest content_of(const PlannedEntry& planned, const bundle::Payload& payload, const KnownChunks& known,
                          const Repair& repair, bundle::Progress& progress) {
  const bool plain = planned.draft.encoding == bundle::Encoding::Identity;
  if (plain)
    if (const auto chunks = known.read(planned.draft.sha256, planned.draft.size, payload)) {
      progress.skip(planned.draft.size);
      bundle::Entry entry = planned.draft;
      entry.stored_size = entry.size;
      return content_digest(entry, payload, *chunks);
    }
  const bundle::StoredForm form = read_repaired(planned.content, repair, [&] {
    bundle::FileSource source(std::filesystem::canonical(planned.file));
    return bundle::stored_form(planned.draft, source, payload);
  });
  if (plain) known.write(planned.draft.sha256, planned.draft.size, payload, form.chunks);
  progress.add(planned.draft.size);
  return form.entry.content;
}

// A store that has this very wheel from a patch has it under the patch's name, which only the bundle that was sent
// tells. That name says how chunks are cut, as every other.
bool was_sent_as_patch(PlannedEntry& entry, const bundle::Payload& payload, const Base& base) {
  const SentWheel* const sent = sent_version_of(entry, base);
  if (sent == nullptr || sent->sha256 != entry.draft.sha256 || base.sent->payload.digest != payload.digest ||
      base.sent->payload.chunk_size != payload.chunk_size)
    return false;
  entry.draft.content = sent->content;
  return true;
}

}  // namespace

void make_delta(PackPlan& plan, const Base& base, const KnownChunks& known, const Repair& repair,
                bundle::Progress& progress, const Patching* patching) {
  const bundle::Inventory& inventory = base.inventory;
  std::size_t absent = 0;
  std::uint64_t bytes = 0;
  progress.begin("comparing with what the target has", plan.payload_size());
  for (PlannedEntry& entry : plan.entries) {
    bundle::stop_if_interrupted();
    if (!entry.content.is_installed()) {  // no store has what no installation has
      progress.skip(entry.draft.size);
      continue;
    }
    entry.draft.content = content_of(entry, plan.draft.payload, known, repair, progress);
    entry.draft.absent = inventory.has(entry.draft) || was_sent_as_patch(entry, plan.draft.payload, base);
    if (!entry.draft.absent) continue;
    ++absent;
    bytes += entry.draft.size;
  }
  progress.end();
  for (const bundle::Inventory::Installed& one : inventory.generations)
    if (one.name == plan.draft.name && one.channel == plan.draft.channel && one.version >= plan.draft.version)
      progress.warn(
          fmt::format("the target already has version {} of {} and will refuse version {}; raise the job's "
                      "version",
                      one.version, one.name, plan.draft.version));
  const std::size_t patched = patching == nullptr ? 0 : make_patches(plan, base, *patching, repair, progress);
  if (absent + patched == 0) {
    progress.warn("the base has nothing of this bundle, so it is not a delta: it carries everything");
    return;
  }
  plan.draft.base = bundle::inventory_digest(inventory);
  progress.note(fmt::format("a delta: {} of {} entries ({}) are not carried, because the target has them", absent,
                            plan.entries.size(), bundle::human_size(bytes)));
}

}  // namespace sealift::packager
