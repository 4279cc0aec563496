// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install export`: verified entries as plain files, for servers that a site has already. A file
// gets its name when each of its bytes was checked and is durable; what stands there already is never replaced.
#pragma once

#include "installer/disk/disk.hpp"
#include "installer/export/export_plan.hpp"
#include "installer/export/published_wheel.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct ExportedFolder {
  std::filesystem::path folder;
  std::vector<std::string> written;  // places below it
  std::vector<std::string> there;    // had these very bytes before
  std::vector<std::string> absent;   // entries that this delta does not carry
  std::vector<std::string> patched;  // that it carries as patches, where no base is named
  std::uint64_t bytes = 0;           // written
};

struct Exported {
  std::string name;
  std::uint64_t version = 0;
  bundle::Digest identity;
  std::vector<std::string> warnings;
  std::vector<ExportedFolder> folders;
  std::vector<bundle::MendedVolume> mended;  // what was damaged on the medium, and is right in the files
};

// `bases`: where there are any, wheels that are carried as patches are made of these; published_wheel.hpp.
// Looks at all folders before it writes to one. Throws Conflict where another file stands, Space, Digest for a bad
// chunk or an entry that is not what was published; files that were finished before stay, since they are right.
Exported export_bundle(const bundle::VerifiedBundle& bundle, const ExportFolders& folders, unsigned threads, Disk& disk,
                       bundle::Progress& progress, const VerifiedBundles& bases = {});

}  // namespace sealift::installer
