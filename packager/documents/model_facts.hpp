// SPDX-License-Identifier: Apache-2.0
// The models and data sets of a bundle as components: which files are one of them, what it is called, and what it
// states of its licence. Names and commits come from the signed catalogue of hubs; what came from a folder has that
// folder's name and no more, since nothing signed says more.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packager/documents/licence_files.hpp"
#include "packager/documents/model_card.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

struct BundledModel {
  std::optional<bundle::HubName> hub = std::nullopt;  // nothing: from a folder
  bool data = false;
  std::string name;                          // "org/name", or the folder below models/ or data/
  std::string commit = {};                   // of a hub; of ModelScope, which has none, a branch or tag
  std::map<std::string, std::string> files;  // path in the repository -> path in the bundle
  std::vector<std::string> twins = {};       // further paths in the bundle: of the hub's cache
  bool licence_known = true;                 // false: a delta leaves out what would say it
  StatedLicence stated = {};                 // of its README
  std::string folder = {};                   // below licences/; empty when it has no licence file
  CollectedLicences licences = {};

  // "pkg:huggingface/org/name@COMMIT", of data "pkg:huggingface/datasets/org/name@COMMIT", "pkg:modelscope/…"; of a
  // folder nothing.
  std::string purl() const;
  // In a bundle's documents, each once: the purl, or "folder:models/NAME".
  std::string ref() const;
};

// Copies licence files below `licences`, into folders that `folders` names. `lock` helps where a delta leaves out the
// catalogue. Sorted: hubs first, by name and commit.
std::vector<BundledModel> read_bundled_models(const bundle::VerifiedBundle& source, const std::optional<Lock>& lock,
                                              const std::filesystem::path& licences, PlainNames& folders);

}  // namespace sealift::packager
