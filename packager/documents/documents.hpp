// SPDX-License-Identifier: Apache-2.0
// `sealift-pack documents`: what people file with a bundle, made from the bundle alone: SBOM, provenance, licences and
// a review page for the media desk. The bundle is verified by a pinned root first and every byte is read through the
// VerifiedBundle, so the documents say nothing that was not signed. The same bundle gives the same bytes, whenever and
// wherever they are made: anyone who has the bundle can make them again and compare, so they need no signature.
#pragma once

#include <filesystem>
#include <vector>

#include "packager/host/console.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

struct DocumentsOptions {
  std::filesystem::path bundle;
  bundle::Digest fingerprint;  // of the root by which the bundle is verified
  std::filesystem::path lock;  // empty: documents without addresses
  std::filesystem::path out;   // the new folder
};

// The files that were written, sorted. Throws what bundle::verify throws; Digest when any chunk differs; Conflict when
// `out` exists or the lock is another bundle's.
std::vector<std::filesystem::path> write_documents(const DocumentsOptions& options, Console& console);

}  // namespace sealift::packager
