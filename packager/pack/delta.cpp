// SPDX-License-Identifier: Apache-2.0
// Marks entries of a plan; see delta.hpp.
#include "packager/pack/delta.hpp"

#include <fmt/format.h>

#include "sealift/bundle/bundle_writer.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

bundle::Inventory read_inventory(const std::filesystem::path& file) {
  return bundle::parse_inventory(bundle::read_text(file, bundle::kMaxInventorySize), file.string());
}

bundle::Inventory inventory_of_bundle(const std::filesystem::path& folder_or_seal, const bundle::Digest& root) {
  bundle::OpenBundle opened = bundle::open(folder_or_seal);
  // Its volumes may have left with the discs: seal and chunk list name all contents.
  opened.ask = [](const bundle::Volume&, const bundle::Error&) { return std::nullopt; };
  // At no time: that its root has expired since does not change what was sent.
  const bundle::VerifiedBundle sent = bundle::verify(opened, {.state = {.pinned = root}}, bundle::Time{});
  const bundle::Manifest& manifest = sent.manifest();
  bundle::Inventory inventory{.generations = {{.name = manifest.name,
                                               .channel = manifest.channel,
                                               .version = manifest.version,
                                               .identity = sent.identity()}},
                              .items = {}};
  for (const bundle::Environment::Placement& placement : manifest.environment.placements)
    inventory.items.insert(bundle::store_item_name(*manifest.find(placement.entry)));
  return inventory;
}

bundle::Inventory read_base(const std::filesystem::path& base, const std::vector<bundle::Envelope>& roots) {
  std::error_code ignored;
  const bool is_bundle = std::filesystem::is_directory(base, ignored) || base.extension() == bundle::kSealSuffix;
  return is_bundle ? inventory_of_bundle(base, roots.front().digest()) : read_inventory(base);
}

namespace {

// What names this entry in a store: bytes that were read, or whose chunks are known for their SHA-256.
bundle::Digest content_of(const PlannedEntry& planned, const bundle::Payload& payload, const KnownChunks& known,
                          const Repair& repair, bundle::Progress& progress) {
  const bool plain = planned.draft.encoding == bundle::Encoding::Identity;
  if (plain)
    if (const auto chunks = known.read(planned.draft.sha256, payload)) {
      progress.skip(planned.draft.size);
      bundle::Entry entry = planned.draft;
      entry.stored_size = entry.size;
      return content_digest(entry, payload, *chunks);
    }
  const bundle::StoredForm form = read_repaired(planned.content, repair, [&] {
    bundle::FileSource source(std::filesystem::canonical(planned.file));
    return bundle::stored_form(planned.draft, source, payload);
  });
  if (plain) known.write(planned.draft.sha256, payload, form.chunks);
  progress.add(planned.draft.size);
  return form.entry.content;
}

}  // namespace

void make_delta(PackPlan& plan, const bundle::Inventory& inventory, const KnownChunks& known, const Repair& repair,
                bundle::Progress& progress) {
  std::size_t absent = 0;
  std::uint64_t bytes = 0;
  progress.begin("comparing with what the target has", plan.payload_size());
  for (PlannedEntry& entry : plan.entries) {
    bundle::stop_if_interrupted();
    entry.draft.content = content_of(entry, plan.draft.payload, known, repair, progress);
    entry.draft.absent = inventory.has(entry.draft);
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
  if (absent == 0) {
    progress.warn("the base has nothing of this bundle, so it is not a delta: it carries everything");
    return;
  }
  plan.draft.base = bundle::inventory_digest(inventory);
  progress.note(fmt::format("a delta: {} of {} entries ({}) are not carried, because the target has them", absent,
                            plan.entries.size(), bundle::human_size(bytes)));
}

}  // namespace sealift::packager
