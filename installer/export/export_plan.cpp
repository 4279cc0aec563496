// SPDX-License-Identifier: Apache-2.0
// An entry's path says what it is, since the packer gives each kind a folder of its own. In a hub's cache layout only
// snapshots are files of a repository; what names them (refs) means nothing outside a cache.
#include "installer/export/export_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::installer {

namespace {

using bundle::Entry;
using bundle::EntryKind;
using Destination = std::optional<std::string>;  // nothing: this entry is of another kind

bool take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

Destination wheel_place(const Entry& entry) {
  if (entry.kind != EntryKind::Wheel) return std::nullopt;
  const std::string& path = entry.path.text();
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!bundle::parse_wheel_name(name))
    throw bundle::Error(bundle::ErrorCode::Format, {.what = "this is no file name of a wheel", .where = path});
  return name;
}

// "models--ORG--NAME/snapshots/COMMIT/FILE" -> "ORG/NAME/FILE"; `joint` is what stands behind the kind.
Destination cached_place(std::string_view path, const std::string& joint) {
  const std::string_view top = take(path, "models" + joint) ? "" : "data/";
  if (!top.empty() && !take(path, "datasets" + joint)) return std::nullopt;
  const std::size_t end = path.find('/');
  if (end == path.npos) return std::nullopt;
  std::string repository(path.substr(0, end));
  if (const std::size_t cut = repository.find("--"); cut != repository.npos) repository.replace(cut, 2, "/");
  path.remove_prefix(end + 1);
  if (!take(path, "snapshots/")) return std::nullopt;
  const std::size_t commit = path.find('/');
  if (commit == path.npos) return std::nullopt;
  return std::string(top) + repository + std::string(path.substr(commit));
}

Destination model_place(const Entry& entry) {
  std::string_view path = entry.path.text();
  if (entry.kind != EntryKind::File || !take(path, "files/")) return std::nullopt;
  if (path.starts_with("apt/") || path.starts_with("rpm/")) return std::nullopt;
  if (take(path, "hub/")) return cached_place(path, "--");
  if (take(path, "modelscope/")) return cached_place(path, "/");
  take(path, "models/");
  return std::string(path);
}

Destination below(const Entry& entry, std::string_view folder) {
  std::string_view path = entry.path.text();
  if (entry.kind != EntryKind::File || !take(path, folder)) return std::nullopt;
  return std::string(path);
}

Destination deb_place(const Entry& entry) {
  return below(entry, "files/apt/");
}

Destination rpm_place(const Entry& entry) {
  return below(entry, "files/rpm/");
}

Destination program_place(const Entry& entry) {
  return below(entry, "programs/");
}

// For a catalogue that was parsed against this manifest.
const Entry* image_blob(const bundle::Manifest& manifest, const bundle::Digest& digest) {
  return manifest.find(bundle::SafePath::parse(bundle::image_blob_entry(digest), "an image"));
}

FolderPlan plan_folder(const bundle::Manifest& manifest, const std::filesystem::path& folder,
                       Destination (*place_of)(const Entry&)) {
  FolderPlan plan{.folder = std::filesystem::absolute(folder).lexically_normal(), .files = {}};
  std::map<std::string, const Entry*> taken;
  for (const Entry& entry : manifest.entries) {
    const Destination place = place_of(entry);
    if (!place) continue;
    if (entry.absent) {
      plan.absent.push_back(&entry);
      continue;
    }
    ExportFile file{.entry = &entry, .place = bundle::SafePath::parse(*place, "the place of " + entry.path.text())};
    const auto [other, fresh] = taken.emplace(file.place.text(), &entry);
    if (fresh)
      (entry.encoding == bundle::Encoding::Patch ? plan.patched : plan.files).push_back(std::move(file));
    else if (other->second->sha256 != entry.sha256)
      throw bundle::Error(bundle::ErrorCode::Conflict,
                          {.what = "two different files would have one name",
                           .where = (folder / *place).string(),
                           .expected = other->second->path.text() + ", sha256 " + other->second->sha256.hex(),
                           .got = entry.path.text() + ", sha256 " + entry.sha256.hex(),
                           .next = "pack them in bundles of their own, and export each into a folder of its own"});
  }
  return plan;
}

ExportFile text_file(const std::string& place, std::string text) {
  auto made = std::make_shared<ExportText>();
  made->entry.path = bundle::SafePath::parse(place, "an image layout");
  made->entry.size = text.size();
  made->entry.sha256 = bundle::sha256(bundle::as_bytes(text));
  made->text = std::move(text);
  return {.entry = &made->entry, .place = made->entry.path, .text = made};
}

// Blobs under their digests; index.json names the images, and without it nobody reads the layout.
FolderPlan plan_images(const bundle::Manifest& manifest, const std::filesystem::path& folder,
                       const bundle::ImageCatalogue& images) {
  FolderPlan plan{.folder = std::filesystem::absolute(folder).lexically_normal(), .files = {}};
  std::map<std::string, const Entry*> blobs;
  bundle::Json manifests = bundle::Json::array();
  for (const bundle::CarriedImage& image : images) {
    std::vector<const Entry*> all = {image_blob(manifest, image.manifest)};
    for (const bundle::Digest& blob : image.blobs) all.push_back(image_blob(manifest, blob));
    if (std::any_of(all.begin(), all.end(), [](const Entry* entry) { return entry->absent; })) {
      for (const Entry* entry : all)
        if (entry->absent) plan.absent.push_back(entry);
      continue;
    }
    for (const Entry* entry : all) blobs.emplace("blobs/sha256/" + entry->sha256.hex(), entry);
    manifests.push_back({{"mediaType", image.media_type},
                         {"digest", "sha256:" + image.manifest.hex()},
                         {"size", all.front()->size},
                         {"annotations", {{"org.opencontainers.image.ref.name", image.name + ":" + image.tag}}}});
  }
  for (const auto& [place, entry] : blobs)
    plan.files.push_back({.entry = entry, .place = bundle::SafePath::parse(place, "an image layout")});
  if (manifests.empty()) return plan;
  plan.last = {
      text_file("oci-layout", R"({"imageLayoutVersion":"1.0.0"})"),
      text_file("index.json", bundle::write_json({{"schemaVersion", 2}, {"manifests", std::move(manifests)}}))};
  return plan;
}

}  // namespace

std::vector<FolderPlan> plan_export(const bundle::Manifest& manifest, const ExportFolders& folders,
                                    const bundle::ImageCatalogue& images) {
  std::vector<FolderPlan> plans;
  const auto add = [&](const std::filesystem::path& folder, Destination (*place_of)(const Entry&)) {
    if (!folder.empty()) plans.push_back(plan_folder(manifest, folder, place_of));
  };
  add(folders.wheels, wheel_place);
  add(folders.models, model_place);
  add(folders.debs, deb_place);
  add(folders.rpms, rpm_place);
  add(folders.programs, program_place);
  if (!folders.images.empty()) plans.push_back(plan_images(manifest, folders.images, images));
  for (FolderPlan& plan : plans)
    std::sort(plan.files.begin(), plan.files.end(),
              [](const ExportFile& a, const ExportFile& b) { return a.entry->offset < b.entry->offset; });
  if (plans.empty())
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "no folder is named to export into",
                         .expected = "--wheels, --models, --debs, --rpms, --programs or --images"});
  return plans;
}

}  // namespace sealift::installer
