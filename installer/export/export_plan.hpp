// SPDX-License-Identifier: Apache-2.0
// Which entries of a bundle become plain files for a Nexus, a MinIO or a mirror of Debian or rpm packages, and under
// which names. A pure function of the signed manifest, so that everything is refused before anything is written.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sealift/bundle/manifest/image_catalogue.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::installer {

// One folder for each kind of content; empty: that kind is not wanted.
struct ExportFolders {
  std::filesystem::path wheels;    // each under the name that it was published with
  std::filesystem::path models;    // repository folders: ORG/NAME/FILE; data lies in data/ORG/NAME/FILE
  std::filesystem::path debs;      // a flat repository: the packages and their index
  std::filesystem::path rpms;      // a repository: the packages, their repodata and the keys
  std::filesystem::path programs;  // as they lie below the root of an environment
  std::filesystem::path images;    // an OCI image layout, as skopeo, podman and umoci read it
};

// A file that is made here, of what was signed.
struct ExportText {
  bundle::Entry entry;  // of no manifest: its size and digest
  std::string text;
};

struct ExportFile {
  const bundle::Entry* entry = nullptr;         // of the manifest
  bundle::SafePath place;                       // below its folder
  std::shared_ptr<const ExportText> text = {};  // whose entry it is, where it is of no manifest
};

struct FolderPlan {
  std::filesystem::path folder;
  std::vector<ExportFile> files;               // in payload order
  std::vector<ExportFile> last = {};           // texts that name the files, and so are written behind them
  std::vector<const bundle::Entry*> absent{};  // wanted, but this delta does not carry them
  std::vector<ExportFile> patched{};           // wheels that it carries as patches on others
};

// One for each folder that is not empty. Two entries of equal bytes may have one place. Throws Conflict for different
// ones, Format for a place that would leave its folder, and Usage when no folder is named.
// `images` are what the signed list says; where a blob of one is absent, the whole image is.
std::vector<FolderPlan> plan_export(const bundle::Manifest& manifest, const ExportFolders& folders,
                                    const bundle::ImageCatalogue& images = {});

}  // namespace sealift::installer
