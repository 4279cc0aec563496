// SPDX-License-Identifier: Apache-2.0
// Each wheel's METADATA is read through the checked payload and kept, since it is small and every resolver asks for it.
// It lies at the wheel's end, so a start reads a chunk or two of each, and none of the many that versions of one
// environment have in common.
// The wheel's bytes stay in the bundle.
#include "offline_repo/catalogue/catalogue.hpp"

#include <algorithm>
#include <thread>

#include "offline_repo/catalogue/not_served.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Error;
using bundle::ErrorCode;

IndexedWheel read_wheel(const std::shared_ptr<const bundle::VerifiedBundle>& in, const bundle::Entry& entry) {
  const std::string& path = entry.path.text();
  const std::string where = in->manifest().stem() + ":" + path;
  IndexedWheel indexed;
  static_cast<ServedFile&>(indexed) = served_file(in, entry, "a wheel");
  indexed.file_name = path.substr(path.rfind('/') + 1);
  const std::unique_ptr<bundle::ByteSource> source = in->stored(entry);
  try {
    const std::vector<bundle::Digest>& allowed = in->manifest().environment.startup_files;
    const bundle::Wheel wheel(*source, indexed.file_name, {allowed.begin(), allowed.end()});
    indexed.version = wheel.metadata_field("Version").value_or(wheel.name().version);
    indexed.requires_python = wheel.metadata_field("Requires-Python");
    indexed.metadata = wheel.metadata();
  } catch (const Error& error) {
    throw error.within("while indexing " + where);
  }
  indexed.metadata_sha256 = bundle::sha256(bundle::as_bytes(indexed.metadata));
  indexed.uploaded = in->manifest().created;
  return indexed;
}

// Wheels of other bundles, by content: a name that bytes get by their own chunk digests, no matter who signed the
// bundle.
using KnownWheels = std::map<bundle::Digest, const IndexedWheel*>;

// Whether a wheel is good depends on the start-up files that its bundle allows, too.
KnownWheels known_wheels(const std::vector<Contents>& before, const bundle::Manifest& manifest) {
  KnownWheels known;
  for (const Contents& contents : before)
    if (contents->in->manifest().environment.startup_files == manifest.environment.startup_files)
      for (const IndexedWheel& wheel : contents->wheels) known.emplace(wheel.entry->content, &wheel);
  return known;
}

// Nothing when it has to be read.
std::optional<IndexedWheel> known_wheel(const KnownWheels& known, const bundle::Entry& entry,
                                        const std::shared_ptr<const bundle::VerifiedBundle>& in) {
  const auto found = known.find(entry.content);
  if (found == known.end() || !entry.path.text().ends_with("/" + found->second->file_name)) return std::nullopt;
  IndexedWheel wheel = *found->second;
  static_cast<ServedFile&>(wheel) = served_file(in, entry, "a wheel");
  wheel.uploaded = in->manifest().created;
  return wheel;
}

// By as many threads as there are processors, at most as many as hold 64 MiB of chunks.
std::vector<IndexedWheel> read_wheels(const std::shared_ptr<const bundle::VerifiedBundle>& in,
                                      const std::vector<const bundle::Entry*>& entries, const KnownWheels& known) {
  std::vector<IndexedWheel> wheels(entries.size());
  bundle::parallel_for(std::min(8u, std::thread::hardware_concurrency()), entries.size(), [&](std::size_t i) {
    std::optional<IndexedWheel> same = known_wheel(known, *entries[i], in);
    wheels[i] = same ? *std::move(same) : read_wheel(in, *entries[i]);
  });
  return wheels;
}

std::string described(const IndexedWheel& wheel) {
  return wheel.in->manifest().stem() + " in " + wheel.in->folder().string() + ": sha256 " + wheel.sha256.hex();
}

// The same bytes twice are one wheel, as old as the older bundle. Different bytes under one name are refused: either
// answer could be wrong.
void add(Project& project, const IndexedWheel& wheel) {
  const auto [place, fresh] = project.wheels.try_emplace(wheel.file_name, wheel);
  if (fresh) return;
  if (place->second.sha256 == wheel.sha256) {
    place->second.uploaded = std::min(place->second.uploaded, wheel.uploaded);
    return;
  }
  throw Error(ErrorCode::Conflict, {.what = "two wheels have the same file name and different bytes",
                                    .where = wheel.file_name,
                                    .expected = described(place->second),
                                    .got = described(wheel),
                                    .next = "each is served by its own address, /b/NAME-VERSION/"});
}

// Registries know lower-case names only, so they do not have a bundle of another name.
void add_artifact(Catalogue& catalogue, const BundleContents& contents) {
  const bundle::Manifest& manifest = contents.in->manifest();
  const std::string name = std::string(kArtifactPrefix) + manifest.name;
  if (contents.artifact && contents.rotten.empty() && bundle::is_repository_name(name))
    catalogue.artifacts[name].emplace(std::to_string(manifest.version), contents.artifact);
}

bool is_older(const bundle::Manifest& one, const bundle::Manifest& other) {
  return std::pair(one.created, one.version) < std::pair(other.created, other.version);
}

// Files of two bundles are never mixed: a list with digests says what one of them holds.
EntryLists entry_lists_of(const std::vector<Contents>& bundles) {
  std::map<std::string, Contents> newest;
  for (const Contents& contents : bundles) {
    Contents& place = newest[contents->in->manifest().name];
    if (!place || is_older(place->in->manifest(), contents->in->manifest())) place = contents;
  }
  EntryLists lists;
  for (const auto& [name, contents] : newest)
    lists[name] = contents->entries && contents->rotten.empty() ? contents->entries
                                                                : entry_list_of(contents->in, contents->rotten);
  return lists;
}

}  // namespace

std::string IndexedWheel::project() const {
  return bundle::normalized_project_name(bundle::parse_wheel_name(file_name)->name);
}

std::set<std::string> Project::versions() const {
  std::set<std::string> all;
  for (const auto& [file_name, wheel] : wheels) all.insert(wheel.version);
  return all;
}

std::size_t Catalogue::wheel_count() const {
  std::size_t count = 0;
  for (const auto& [name, project] : projects) count += project.wheels.size();
  return count;
}

std::optional<LastCheck::Times> Catalogue::last_check(const bundle::VerifiedBundle* in) const {
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].get() == in) return checks[i]->times();
  return std::nullopt;
}

const Project* Catalogue::find_project(std::string_view name) const {
  const auto found = projects.find(bundle::normalized_project_name(name));
  return found != projects.end() ? &found->second : nullptr;
}

const IndexedWheel* Catalogue::find_wheel(std::string_view sha256, std::string_view file_name) const {
  const Project* project = find_project(file_name.substr(0, file_name.find('-')));
  if (project == nullptr) return nullptr;
  const auto found = project->wheels.find(std::string(file_name));
  return found != project->wheels.end() && found->second.sha256.hex() == sha256 ? &found->second : nullptr;
}

Contents read_contents(std::shared_ptr<const bundle::VerifiedBundle> in, const std::vector<Contents>& before) {
  auto contents = std::make_shared<BundleContents>(BundleContents{.in = std::move(in)});
  contents->check->note_verified();
  std::vector<const bundle::Entry*> whole;
  for (const bundle::Entry& entry : contents->in->manifest().entries)
    if (entry.kind == bundle::EntryKind::Wheel && !entry.absent) {
      if (entry.encoding == bundle::Encoding::Patch)
        contents->patched.push_back(entry.path.text());
      else
        whole.push_back(&entry);
    }
  contents->wheels = read_wheels(contents->in, whole, known_wheels(before, contents->in->manifest()));
  contents->repositories = read_hub_repositories(*contents->in);
  contents->cards = read_cards(*contents->in, contents->repositories);
  contents->images = read_image_list(*contents->in);
  contents->entries = entry_list_of(contents->in);
  contents->artifact = std::make_shared<BundleArtifact>(contents->in);
  catalogue_of({contents});  // it can be served alone
  return contents;
}

Catalogue make_catalogue(std::vector<bundle::VerifiedBundle> bundles) {
  std::vector<Contents> contents;
  for (bundle::VerifiedBundle& verified : bundles)
    contents.push_back(read_contents(std::make_shared<const bundle::VerifiedBundle>(std::move(verified))));
  return catalogue_of(contents);
}

Catalogue catalogue_of(const std::vector<Contents>& bundles) {
  Catalogue catalogue;
  std::vector<AptSource> apt;
  for (const Contents& contents : bundles) {
    apt.push_back({.in = contents->in, .rotten = &contents->rotten});
    catalogue.bundles.push_back(contents->in->manifest().stem());
    catalogue.sources.push_back(contents->in);
    catalogue.checks.push_back(contents->check);
    for (const IndexedWheel& wheel : contents->wheels) {
      const std::string name = wheel.project();
      add(catalogue.projects.try_emplace(name, Project{.name = name}).first->second, wheel);
    }
    add_hub_repositories(catalogue.repositories, contents->repositories, contents->in, contents->rotten);
    for (InBoth& line : add_images(catalogue.images, contents->images, contents->in, contents->rotten))
      catalogue.left_out.push_back(std::move(line));
    for (InBoth& line : add_rpms(catalogue.rpms, contents->in, contents->rotten))
      catalogue.left_out.push_back(std::move(line));
    add_artifact(catalogue, *contents);
    catalogue.cards.insert(contents->cards.begin(), contents->cards.end());
    for (const std::string& path : contents->patched)
      catalogue.left_out.push_back(patched_wheel(contents->in->manifest().stem(), path));
    for (const std::string& path : contents->rotten)
      if (path.ends_with(".whl")) catalogue.left_out.push_back(rotten_wheel(contents->in->manifest().stem(), path));
  }
  catalogue.entries = entry_lists_of(bundles);
  catalogue.apt = apt_repositories_of(apt, catalogue.left_out);
  for (InBoth& line : drop_incomplete(catalogue.repositories)) catalogue.left_out.push_back(std::move(line));
  return catalogue;
}

}  // namespace sealift::offline_repo
