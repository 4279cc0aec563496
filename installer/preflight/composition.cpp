// SPDX-License-Identifier: Apache-2.0
// An addition may not change how the environment's programs start or what they import: that was checked outside, for
// the bundle that brings them.
#include "installer/preflight/composition.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "installer/generations/withdrawn.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"
#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/manifest/variables.hpp"
#include "sealift/bundle/trust/root.hpp"

namespace sealift::installer {

using bundle::Entry;
using Bundle = GenerationRecord::Bundle;

namespace {

Bundle bundle_of(const bundle::VerifiedBundle& bundle) {
  return {.name = bundle.manifest().name,
          .version = bundle.manifest().version,
          .channel = bundle.manifest().channel,
          .created = bundle.manifest().created,
          .identity = bundle.identity(),
          .signers = bundle.signers(),
          .root = bundle.root_name()};
}

std::vector<GenerationRecord::Part> parts_of(const bundle::VerifiedBundle& bundle, const std::string& added = {}) {
  std::vector<GenerationRecord::Part> parts;
  for (const bundle::Environment::Placement& placement : bundle.manifest().environment.placements) {
    // The catalogue is for a repository, which reads it from the bundle; an environment may have one of its own.
    if (!added.empty() && placement.into == bundle::kHubCataloguePlace) continue;
    parts.push_back({.path = placement.entry.text(),
                     .item = bundle::store_item_name(*bundle.manifest().find(placement.entry)),
                     .into = placement.into,
                     .left_out = placement.left_out,
                     .shared = placement.shared,
                     .added = added});
  }
  return parts;
}

GenerationRecord record_of(const bundle::VerifiedBundle& bundle) {
  return {.name = bundle.manifest().name,
          .version = bundle.manifest().version,
          .channel = bundle.manifest().channel,
          .created = bundle.manifest().created,
          .identity = bundle.identity(),
          .signers = bundle.signers(),
          .root = bundle.root_name(),
          .interpreter = bundle.manifest().environment.interpreter.text(),
          .site_packages = bundle.manifest().environment.site_packages.text(),
          .entries = parts_of(bundle)};
}

[[noreturn]] void refuse_addition(const bundle::Manifest& manifest, std::string what, std::string got,
                                  std::string next) {
  throw bundle::Error(bundle::ErrorCode::Conflict, {.what = std::move(what) + "; nothing was written",
                                                    .where = manifest.stem(),
                                                    .expected = "models, data, images or packages of a system",
                                                    .got = std::move(got),
                                                    .next = std::move(next)});
}

// Whether it would stand where an environment's programs and libraries are looked for, or say how these are checked.
bool is_of_programs(const bundle::Environment::Placement& placement, const Entry& entry) {
  static constexpr std::array<std::string_view, 7> kFolders{"bin/",     "sbin/",    "lib/",          "lib64/",
                                                            "libexec/", "include/", "share/sealift/"};
  if (placement.into == bundle::kHubCataloguePlace) return false;  // is left out of the generation
  return entry.path.text().starts_with("programs/") ||
         std::any_of(kFolders.begin(), kFolders.end(),
                     [&](std::string_view folder) { return (placement.into + "/").starts_with(folder); });
}

// What an environment's programs start with, or import, comes with the environment.
void require_addition(const bundle::Manifest& manifest) {
  const char* const kWhat = "a bundle that is added brings what only an environment's own bundle may";
  if (brings_interpreter(manifest))
    refuse_addition(manifest, kWhat, "an interpreter", "apply it without --add, in a prefix of its own");
  for (const bundle::Environment::Placement& placement : manifest.environment.placements) {
    const Entry* entry = manifest.find(placement.entry);
    if (entry->kind == bundle::EntryKind::Wheel)
      refuse_addition(manifest, kWhat, "the wheel " + entry->path.text(),
                      "pack it into the environment: its job with that requirement more");
    if (placement.into == bundle::kVariablesPlace)
      refuse_addition(manifest, kWhat, "variables for its programs ([environment])",
                      "pack it without [environment]; the environment's own job sets them");
    if (is_of_programs(placement, *entry))
      refuse_addition(manifest, kWhat, entry->path.text() + ", placed as " + placement.into,
                      "pack it into the environment's own job, or give it a folder of its own (into)");
  }
}

void require_environment(const bundle::Manifest& manifest, const std::optional<CurrentGeneration>& current) {
  const bool by_older = current && current->record.site_packages.empty();
  if (!current || !current->has_interpreter || by_older)
    refuse_addition(manifest, "there is no environment that it could be added to",
                    !current   ? "no generation is current, or its record cannot be read"
                    : by_older ? "an older installer made what is current"
                               : "what is current has no interpreter",
                    by_older ? "apply the environment's bundle once more, which makes a new generation from the store, "
                               "then this with --add"
                             : "apply the environment's bundle first; without one, apply this without --add");
  if (current->record.name == manifest.name && current->record.channel == manifest.channel)
    refuse_addition(manifest, "it has the name and the channel of the environment itself",
                    manifest.channel + "/" + manifest.name, "pack it under a name of its own");
}

void add(Bundle bundle, std::vector<GenerationRecord::Part> parts, GenerationRecord& to) {
  to.added.push_back(std::move(bundle));
  std::sort(to.added.begin(), to.added.end(),
            [](const Bundle& one, const Bundle& other) { return stream_of(one) < stream_of(other); });
  to.entries.insert(to.entries.end(), parts.begin(), parts.end());
}

std::vector<GenerationRecord::Part> parts_added_by(const GenerationRecord& record, const std::string& stream) {
  std::vector<GenerationRecord::Part> parts;
  for (const GenerationRecord::Part& part : record.entries)
    if (part.added == stream) parts.push_back(part);
  return parts;
}

GenerationRecord with_addition(const GenerationRecord& current, const bundle::VerifiedBundle& bundle) {
  GenerationRecord record = current;
  const Bundle added = bundle_of(bundle);
  const std::string stream = stream_of(added);
  std::erase_if(record.added, [&](const Bundle& there) { return stream_of(there) == stream; });
  std::erase_if(record.entries, [&](const GenerationRecord::Part& part) { return part.added == stream; });
  add(added, parts_of(bundle, stream), record);
  return record;
}

std::string words_for_owner(const GenerationRecord& record, const std::string& stream) {
  for (const Bundle& added : record.added)
    if (stream_of(added) == stream) return words_for(added);
  return words_for(bundles_of(record).front());
}

// A file where another bundle of the generation has something, such as the index of a second [apt]. What lies inside
// trees is known once they are unpacked; the layout refuses that.
void require_free_places(const bundle::VerifiedBundle& bundle, const GenerationRecord& record, bool adds) {
  const std::string own = adds ? stream_of(bundle_of(bundle)) : std::string();
  std::map<std::string, std::string> theirs;
  for (const GenerationRecord::Part& part : record.entries)
    if (part.added != own && !part.into.empty()) theirs.emplace(part.into, part.added);
  for (const GenerationRecord::Part& part : record.entries) {
    const Entry* entry =
        part.added == own ? bundle.manifest().find(bundle::SafePath::parse(part.path, "entries")) : nullptr;
    const auto there = theirs.find(part.into);
    if (entry == nullptr || entry->kind != bundle::EntryKind::File || there == theirs.end()) continue;
    throw bundle::Error(bundle::ErrorCode::Conflict,
                        {.what = "two bundles of one environment claim one path; nothing was written",
                         .where = bundle.manifest().stem() + ": " + part.into,
                         .expected = "one owner of each path: of [apt], and of [rpm], one bundle may have it",
                         .got = words_for_owner(record, there->second) + " has it",
                         .next = way_beside_added(adds)});
  }
}

// What was damaged on the media of bundles that stay a part. A volume's name begins with its bundle's.
std::vector<bundle::MendedVolume> mended_of(const GenerationRecord& current, const GenerationRecord& record) {
  std::vector<bundle::MendedVolume> mended;
  const std::vector<Bundle> parts = bundles_of(record);
  for (const bundle::MendedVolume& volume : current.mended)
    if (std::any_of(parts.begin(), parts.end(), [&](const Bundle& part) {
          return volume.name.starts_with(part.name + "-" + std::to_string(part.version) + ".");
        }))
      mended.push_back(volume);
  return mended;
}

// Nothing that was withdrawn gets into one more generation.
void require_not_withdrawn(const bundle::VerifiedBundle& bundle, const GenerationRecord& record) {
  if (bundle.trust().root.empty()) return;
  const bundle::Root root = bundle::parse_root(bundle.trust().root, "the newest accepted root");
  for (const Bundle& kept : bundles_of(record)) {
    if (kept.identity == bundle.identity()) continue;
    std::string fault = withdrawn_fault(root, kept);
    if (fault.empty()) continue;
    throw bundle::Error(
        bundle::ErrorCode::Revoked,
        {.what = "what the new generation would keep was withdrawn; nothing was written",
         .where = words_for(kept),
         .expected = "bundles and signers that the newest accepted root has not withdrawn",
         .got = std::move(fault),
         .next = kept.identity == record.identity
                     ? "apply another version of it first"
                     : "add another version of it (apply --add), or apply the environment's bundle with --drop-added"});
  }
}

}  // namespace

bool brings_interpreter(const bundle::Manifest& manifest) {
  const std::vector<bundle::Environment::Placement>& placements = manifest.environment.placements;
  return std::any_of(placements.begin(), placements.end(), [&](const bundle::Environment::Placement& placement) {
    const Entry* entry = manifest.find(placement.entry);
    return placement.into == manifest.environment.interpreter.text() ||
           (placement.into.empty() && entry != nullptr && entry->kind == bundle::EntryKind::Tree);
  });
}

std::string way_beside_added(bool adds) {
  return adds ? "pack it with another `into`, or leave out what the environment has; as an environment's model it "
                "is a [[model]] of that job"
              : "if it is what was added before that is in the way: apply --drop-added, which leaves it out";
}

bool same_bundles(const GenerationRecord& one, const GenerationRecord& other) {
  return one.identity == other.identity &&
         std::equal(one.added.begin(), one.added.end(), other.added.begin(), other.added.end(),
                    [](const Bundle& a, const Bundle& b) { return a.identity == b.identity; });
}

GenerationRecord composed(const bundle::VerifiedBundle& bundle, const std::optional<CurrentGeneration>& current,
                          Additions additions) {
  if (additions == Additions::Add) {
    require_addition(bundle.manifest());
    require_environment(bundle.manifest(), current);
    GenerationRecord record = with_addition(current->record, bundle);
    record.mended = mended_of(current->record, record);
    require_not_withdrawn(bundle, record);
    require_free_places(bundle, record, true);
    return record;
  }
  GenerationRecord record = record_of(bundle);
  if (current) record.mended = mended_of(current->record, record);
  if (additions == Additions::Drop || !current || !brings_interpreter(bundle.manifest())) return record;
  for (const Bundle& kept : current->record.added)
    if (stream_of(kept) != stream_of(bundle_of(bundle)))
      add(kept, parts_added_by(current->record, stream_of(kept)), record);
  record.mended = mended_of(current->record, record);
  require_not_withdrawn(bundle, record);
  require_free_places(bundle, record, false);
  return record;
}

bundle::Environment environment_of(const bundle::VerifiedBundle& bundle, const GenerationRecord& record) {
  if (record.identity == bundle.identity()) return bundle.manifest().environment;
  bundle::Environment environment;
  environment.interpreter = bundle::SafePath::parse(record.interpreter, "interpreter");
  environment.site_packages = bundle::SafePath::parse(record.site_packages, "site_packages");
  environment.imports = record.self_check.imports;
  return environment;
}

}  // namespace sealift::installer
