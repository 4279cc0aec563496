// SPDX-License-Identifier: Apache-2.0
// Sources and destinations of model files; see model_files.hpp.
#include "packager/models/model_files.hpp"

#include "packager/models/hub.hpp"
#include "packager/models/model_check.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

// "hub/models--org--name" or "modelscope/models/org--name", as the hub's client names it below its cache; ModelScope's
// since its version 1.38 (modelscope_hub 0.5.1, _download.py, _repo_cache_dir_path).
std::string cache_folder(const ModelSpec& spec) {
  std::string name = spec.repo;
  if (const std::size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  const std::string kind = spec.data ? "datasets" : "models";
  return spec.hub == Hub::ModelScope ? "modelscope/" + kind + "/" + name : "hub/" + kind + "--" + name;
}

std::string snapshot_folder(const LockedModel& model) {
  const bool hf = model.spec.hub == Hub::HfHub;
  return cache_folder(model.spec) + "/snapshots/" + (hf ? model.commit : model.spec.revision);
}

bool has_folder(ModelLayout layout) {
  return layout == ModelLayout::Folder || layout == ModelLayout::Both;
}

std::string entry_at(const std::string& into) {
  return "files/" + into;
}

Content placed(const ModelSpec& spec, const std::string& into, const LockedFile& file, Origin origin) {
  return {.name = spec.title() + "/" + file.path,
          .owner = spec.title(),
          .entry = entry_at(into),
          .into = into,
          .size = file.size,
          .sha256 = file.sha256,
          .origin = std::move(origin)};
}

Content written(const ModelSpec& spec, const std::string& into, const std::string& text) {
  const LockedFile file{.path = into, .size = text.size(), .sha256 = bundle::sha256(bundle::as_bytes(text))};
  return placed(spec, into, file, FromText{text});
}

bundle::HubRepository repository_of(const LockedModel& model) {
  const ModelSpec& spec = model.spec;
  const bool hf = spec.hub == Hub::HfHub;
  bundle::HubRepository repository{
      .name = {.hub = hf ? bundle::HubKind::HuggingFace : bundle::HubKind::ModelScope,
               .kind = spec.data ? bundle::RepositoryKind::Dataset : bundle::RepositoryKind::Model,
               .id = spec.repo},
      .commit = hf ? model.commit : spec.revision,
      .revisions = {},
      .files = {}};
  if (hf && spec.revision != model.commit) repository.revisions.push_back(spec.revision);
  const std::string folder = has_folder(spec.layout) ? spec.into : snapshot_folder(model);
  for (const LockedFile& file : model.files)
    repository.files.push_back({.path = bundle::SafePath::parse(file.path, "lock"),
                                .entry = bundle::SafePath::parse(entry_at(folder + "/" + file.path), "lock"),
                                .size = file.size,
                                .sha256 = file.sha256});
  return repository;
}

}  // namespace

fs::path local_file(const LockedModel& model, const LockedFile& file, const Cache& cache) {
  if (model.spec.hub == Hub::Folder) {
    std::error_code error;
    const fs::path path = fs::canonical(model.spec.folder / file.at_source(), error);
    return error ? fs::path() : path;
  }
  return cache.contains(file.sha256) ? cache.path(file.sha256) : fs::path();
}

std::vector<Content> contents_of(const LockedModel& model) {
  const ModelSpec& spec = model.spec;
  const std::string token = token_for(spec);
  std::vector<Content> contents;
  if (model.tree)
    return {{.kind = Content::Kind::Tree,
             .name = spec.title(),
             .owner = spec.title(),
             .entry = "trees/" + spec.into + ".tar",
             .into = {},
             .size = model.tree->size,
             .sha256 = model.tree->sha256,
             .origin = FromLock{}}};
  const auto add = [&](const std::string& folder) {
    for (const LockedFile& file : model.files) {
      const Origin origin =
          spec.hub == Hub::Folder
              ? Origin(FromDisk{spec.folder / file.at_source()})
              : Origin(FromServer{.url = url_of(spec, model.commit, file.at_source()), .bearer = token});
      contents.push_back(placed(spec, folder + "/" + file.path, file, origin));
    }
  };
  if (has_folder(spec.layout)) add(spec.into);
  if (spec.layout == ModelLayout::Folder) return contents;
  add(snapshot_folder(model));
  if (spec.hub == Hub::ModelScope) return contents;  // whose folder has the revision's name
  const std::string folder = cache_folder(spec);
  // Code that asks for no revision, or for `main`, gets the carried one.
  contents.push_back(written(spec, folder + "/refs/main", model.commit));
  if (spec.revision != "main" && spec.revision != model.commit)
    contents.push_back(written(spec, folder + "/refs/" + spec.revision, model.commit));
  return contents;
}

std::optional<Content> hub_catalogue_of(const std::vector<LockedModel>& models) {
  bundle::HubCatalogue catalogue;
  for (const LockedModel& model : models)
    if (model.spec.hub != Hub::Folder) catalogue.push_back(repository_of(model));
  if (catalogue.empty()) return std::nullopt;
  const std::string text = bundle::write_hub_catalogue(std::move(catalogue)), place(bundle::kHubCataloguePlace);
  return Content{.name = place,
                 .owner = "the list of the job's repositories",
                 .entry = std::string(bundle::kHubCatalogueEntry),
                 .into = place,
                 .size = text.size(),
                 .sha256 = bundle::sha256(bundle::as_bytes(text)),
                 .origin = FromText{text}};
}

void require_sound_files(const std::vector<LockedModel>& models, const Cache& cache, const Repair& repair,
                         bundle::Progress& progress) {
  const auto check = [&] {
    require_sound(
        models, [&](const LockedModel& model, const LockedFile& file) { return local_file(model, file, cache); },
        progress);
  };
  try {
    return check();
  } catch (const bundle::Error& error) {
    if (error.code() != bundle::ErrorCode::Format) throw;
    // Its list of faults does not tell a bad model from a damaged cache, so the files are asked before it is believed.
    bool repaired = false;
    for (const LockedModel& model : models)
      for (const Content& content : contents_of(model)) repaired = repair(content) || repaired;
    if (!repaired) throw;
  }
  check();
}

}  // namespace sealift::packager
