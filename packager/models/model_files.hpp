// SPDX-License-Identifier: Apache-2.0
// A locked model's files: where they are on this machine, what is downloaded, and where they go in a generation.
#pragma once

#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/files/fetch.hpp"
#include "packager/job/model.hpp"

namespace sealift::packager {

// In the source folder or in the cache; empty when it is in neither. Links to files are followed.
std::filesystem::path local_file(const LockedModel& model, const LockedFile& file, const Cache& cache);

// The downloads for the models of hubs.
std::vector<Download> downloads_of(const std::vector<LockedModel>& models);

// Throws Missing naming every file of a source folder that is gone or whose size is not the locked one.
void require_folders(const std::vector<LockedModel>& models);

struct PlacedFile {
  std::string into;  // its path in the generation
  std::filesystem::path source;
  LockedFile file;
};

// With both layouts each file has two places; its bytes are carried once. The cache layout has plain files where a
// client has links, which clients accept, and refs that name the commit; those small files are made in `cache`.
std::vector<PlacedFile> place_files(const LockedModel& model, const Cache& cache);

}  // namespace sealift::packager
