// SPDX-License-Identifier: Apache-2.0
// Sources and destinations of model files; see model_files.hpp.
#include "packager/models/model_files.hpp"

#include <fmt/format.h>

#include "packager/models/hub.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// "models--org--name", as the hub's client names it.
std::string cache_folder(const ModelSpec& spec) {
  std::string name = (spec.data ? "datasets--" : "models--") + spec.repo;
  if (const std::size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  return "hub/" + name;
}

PlacedFile made_file(const std::string& into, const std::string& text, const Cache& cache) {
  const LockedFile file{.path = into, .size = text.size(), .sha256 = bundle::sha256(bundle::as_bytes(text))};
  if (!cache.contains(file.sha256)) {
    const fs::path part = cache.part(file.sha256);
    fs::remove(part);
    bundle::write_text(part, text);
    cache.adopt(part, file.sha256);
  }
  return {.into = into, .source = cache.path(file.sha256), .file = file};
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

std::vector<Download> downloads_of(const std::vector<LockedModel>& models) {
  std::vector<Download> downloads;
  for (const LockedModel& model : models) {
    if (model.spec.hub == Hub::Folder) continue;
    const std::string token = token_for(model.spec);
    for (const LockedFile& file : model.files)
      downloads.push_back({.name = model.spec.repo + "/" + file.path,
                           .url = url_of(model.spec, model.commit, file.path),
                           .sha256 = file.sha256,
                           .size = file.size,
                           .bearer = token});
  }
  return downloads;
}

void require_folders(const std::vector<LockedModel>& models) {
  std::string got;
  for (const LockedModel& model : models) {
    if (model.spec.hub != Hub::Folder) continue;
    for (const LockedFile& file : model.files) {
      std::error_code error;
      const fs::path path = model.spec.folder / file.path;
      const std::uint64_t size = fs::file_size(path, error);
      if (error)
        got += "\n    " + path.string() + ": " + error.message();
      else if (size != file.size)
        got += fmt::format("\n    {}: {} bytes, not {}", path.string(), size, file.size);
    }
  }
  if (!got.empty())
    throw Error(ErrorCode::Missing, {.what = "files of a model are not as they were locked",
                                     .got = got,
                                     .next = "bring them back, or run sealift-pack lock again"});
}

std::vector<PlacedFile> place_files(const LockedModel& model, const Cache& cache) {
  const ModelSpec& spec = model.spec;
  std::vector<PlacedFile> placed;
  const auto add = [&](const std::string& folder) {
    for (const LockedFile& file : model.files)
      placed.push_back({.into = folder + "/" + file.path, .source = local_file(model, file, cache), .file = file});
  };
  if (spec.layout != ModelLayout::HfCache) add(spec.into);
  if (spec.layout == ModelLayout::Folder) return placed;
  const std::string folder = cache_folder(spec);
  add(folder + "/snapshots/" + model.commit);
  // Code that asks for no revision, or for `main`, gets the one that was carried.
  placed.push_back(made_file(folder + "/refs/main", model.commit, cache));
  if (spec.revision != "main" && spec.revision != model.commit)
    placed.push_back(made_file(folder + "/refs/" + spec.revision, model.commit, cache));
  return placed;
}

}  // namespace sealift::packager
