// SPDX-License-Identifier: Apache-2.0
// Models and data as values: what a job file asks for, and what a lock pins. A model is a folder of files; [[data]] is
// the same without the checks that apply only to models.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

enum class Hub {
  Folder,      // no hub: a folder on the packing machine
  HfHub,       // a server that speaks the routes of HF_ENDPOINT
  ModelScope,  // a server that speaks ModelScope's
};

enum class ModelLayout {
  Folder,           // plain files below `into`
  HfCache,          // the layout of HF_HUB_CACHE, so that code finds the model by its name
  ModelScopeCache,  // the same for MODELSCOPE_CACHE
  Both,             // Folder, and the cache of the hub that it comes from
  Tree,  // of a folder: as Folder, but carried as one archive, so that a million files are one entry of the manifest
};

struct ModelSpec {
  bool data = false;    // [[data]]
  bool kernel = false;  // of a [[kernel]]: a repository of the hub's kind for kernels, not one for models
  Hub hub = Hub::Folder;
  std::filesystem::path folder;  // of Hub::Folder; absolute
  std::string endpoint;          // of a hub, like "https://host"; no '/' at its end
  std::string repo;              // "org/name"
  std::string revision;          // what was asked for: a branch, a tag, a commit
  std::string into;              // its folder in the generation; a SafePath's text
  ModelLayout layout = ModelLayout::Folder;
  bool allow_pickle = false;

  // For messages: the name that people use.
  std::string title() const { return hub == Hub::Folder ? folder.string() : repo; }
  bool operator==(const ModelSpec&) const = default;
};

struct JobModel {
  ModelSpec spec;
  std::vector<std::string> include;  // patterns; empty: everything
  std::vector<std::string> exclude;
};

struct LockedFile {
  std::string path;  // below the model; a SafePath's text
  std::uint64_t size = 0;
  bundle::Digest sha256;
  std::string spelled = {};  // as its source spells it where that is not Unicode's normal form C; empty: as `path`

  const std::string& at_source() const { return spelled.empty() ? path : spelled; }
  bool operator==(const LockedFile&) const = default;
};

// The archive of a ModelLayout::Tree, which `lock` puts into the cache. It has the digest of each file in it.
struct LockedTree {
  std::uint64_t size = 0;
  bundle::Digest sha256;
  std::uint64_t files = 0;

  bool operator==(const LockedTree&) const = default;
};

struct LockedModel {
  ModelSpec spec;
  std::string commit;             // of Hub::HfHub; 40 hexadecimal digits
  std::vector<LockedFile> files;  // sorted by path; none where there is a tree
  std::optional<LockedTree> tree = std::nullopt;
  std::vector<std::string> empty_folders = {};  // that its tree will have; none once there is one

  std::uint64_t size() const {
    std::uint64_t sum = tree ? tree->size : 0;
    for (const LockedFile& file : files) sum += file.size;
    return sum;
  }
  bool operator==(const LockedModel&) const = default;
};

}  // namespace sealift::packager
