// SPDX-License-Identifier: Apache-2.0
// A locked model's files: where their bytes are on this machine, and what they are as contents of a bundle.
#pragma once

#include <optional>
#include <vector>

#include "packager/content/content.hpp"

namespace sealift::packager {

// In the source folder or in the cache; empty when it is in neither. Links to files are followed.
std::filesystem::path local_file(const LockedModel& model, const LockedFile& file, const Cache& cache);

// With both layouts each file is listed at two places; its bytes are carried once. A cache's layout has plain files
// where Hugging Face's client has links, which clients accept, and refs that name the commit.
std::vector<Content> contents_of(const LockedModel& model);

// What names those of a hub by repository, commit and path, so that a server inside can answer the hub's clients;
// nothing when all come from folders. The same lock gives the same text.
std::optional<Content> hub_catalogue_of(const std::vector<LockedModel>& models);

// Throws Format as require_sound does, which reads the files; damaged ones in the cache are repaired first.
void require_sound_files(const std::vector<LockedModel>& models, const Cache& cache, const Repair& repair,
                         bundle::Progress& progress);

}  // namespace sealift::packager
