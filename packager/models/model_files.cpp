// SPDX-License-Identifier: Apache-2.0
// Sources and destinations of model files; see model_files.hpp.
#include "packager/models/model_files.hpp"

#include "packager/models/hub.hpp"
#include "packager/models/model_check.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

// "models--org--name", as the hub's client names it.
std::string cache_folder(const ModelSpec& spec) {
  std::string name = (spec.data ? "datasets--" : "models--") + spec.repo;
  if (const std::size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  return "hub/" + name;
}

Content placed(const ModelSpec& spec, const std::string& into, const LockedFile& file, Origin origin) {
  return {.name = spec.title() + "/" + file.path,
          .owner = spec.title(),
          .entry = "files/" + into,
          .into = into,
          .size = file.size,
          .sha256 = file.sha256,
          .origin = std::move(origin)};
}

Content written(const ModelSpec& spec, const std::string& into, const std::string& text) {
  const LockedFile file{.path = into, .size = text.size(), .sha256 = bundle::sha256(bundle::as_bytes(text))};
  return placed(spec, into, file, FromText{text});
}

}  // namespace

fs::path local_file(const LockedModel& model, const LockedFile& file, const Cache& cache) {
  if (model.spec.hub == Hub::Folder) {
    std::error_code error;
    const fs::path path = fs::canonical(model.spec.folder / file.path, error);
    return error ? fs::path() : path;
  }
  return cache.contains(file.sha256) ? cache.path(file.sha256) : fs::path();
}

std::vector<Content> contents_of(const LockedModel& model) {
  const ModelSpec& spec = model.spec;
  const std::string token = token_for(spec);
  std::vector<Content> contents;
  const auto add = [&](const std::string& folder) {
    for (const LockedFile& file : model.files) {
      const Origin origin = spec.hub == Hub::Folder
                                ? Origin(FromDisk{spec.folder / file.path})
                                : Origin(FromServer{.url = url_of(spec, model.commit, file.path), .bearer = token});
      contents.push_back(placed(spec, folder + "/" + file.path, file, origin));
    }
  };
  if (spec.layout != ModelLayout::HfCache) add(spec.into);
  if (spec.layout == ModelLayout::Folder) return contents;
  const std::string folder = cache_folder(spec);
  add(folder + "/snapshots/" + model.commit);
  // Code that asks for no revision, or for `main`, gets the one that was carried.
  contents.push_back(written(spec, folder + "/refs/main", model.commit));
  if (spec.revision != "main" && spec.revision != model.commit)
    contents.push_back(written(spec, folder + "/refs/" + spec.revision, model.commit));
  return contents;
}

void require_sound_files(const std::vector<LockedModel>& models, const Cache& cache, const Repair& repair,
                         Console& console) {
  const auto check = [&] {
    require_sound(
        models, [&](const LockedModel& model, const LockedFile& file) { return local_file(model, file, cache); },
        console);
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
