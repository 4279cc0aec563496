// SPDX-License-Identifier: Apache-2.0
// Of a bundle, seal and chunk list are read and verified, and no volume; see base.hpp.
#include "packager/delta/base.hpp"

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

bundle::Inventory read_inventory(const std::filesystem::path& file) {
  return bundle::parse_inventory(bundle::read_text(file, bundle::kMaxInventorySize), file.string());
}

namespace {

bundle::VerifiedBundle open_sent(const std::filesystem::path& folder_or_seal, const bundle::Digest& root) {
  bundle::OpenBundle opened = bundle::open(folder_or_seal);
  // Its volumes may have left with the discs: seal and chunk list name all contents.
  opened.ask = [](const bundle::Volume&, const bundle::Error&) { return std::nullopt; };
  // At no time: that its root has expired since does not change what was sent.
  return bundle::verify(opened, {.state = {.pinned = root}}, bundle::Time{});
}

bundle::Inventory inventory_of(const bundle::VerifiedBundle& sent) {
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

// The ones that its site has installed: names of the store are vouched for by the signers of the bundle that was sent.
Base::Sent wheels_of(const bundle::Manifest& manifest) {
  const std::vector<bundle::Digest>& allowed = manifest.environment.startup_files;
  Base::Sent sent{.wheels = {}, .startup_files = {allowed.begin(), allowed.end()}, .payload = manifest.payload};
  for (const bundle::Environment::Placement& placement : manifest.environment.placements) {
    const bundle::Entry& entry = *manifest.find(placement.entry);
    const std::string path = entry.path.text(), file_name = path.substr(path.rfind('/') + 1);
    if (const auto name = bundle::parse_wheel_name(file_name); name && entry.kind == bundle::EntryKind::Wheel)
      sent.wheels.emplace(bundle::normalized_project_name(name->name),
                          SentWheel{.file_name = file_name, .sha256 = entry.sha256, .content = entry.content});
  }
  return sent;
}

}  // namespace

bundle::Inventory inventory_of_bundle(const std::filesystem::path& folder_or_seal, const bundle::Digest& root) {
  return inventory_of(open_sent(folder_or_seal, root));
}

Base read_base(const std::filesystem::path& base, const std::vector<bundle::Envelope>& roots) {
  std::error_code ignored;
  const bool is_bundle = std::filesystem::is_directory(base, ignored) || base.extension() == bundle::kSealSuffix;
  if (!is_bundle) return {.inventory = read_inventory(base)};
  const bundle::VerifiedBundle sent = open_sent(base, roots.front().digest());
  return {.inventory = inventory_of(sent), .sent = wheels_of(sent.manifest())};
}

const SentWheel* sent_version_of(const PlannedEntry& entry, const Base& base) {
  const auto name = bundle::parse_wheel_name(entry.content.owner);
  if (!base.sent || entry.draft.kind != bundle::EntryKind::Wheel || !name) return nullptr;
  const auto found = base.sent->wheels.find(bundle::normalized_project_name(name->name));
  return found == base.sent->wheels.end() ? nullptr : &found->second;
}

}  // namespace sealift::packager
