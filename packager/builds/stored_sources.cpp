// SPDX-License-Identifier: Apache-2.0
// Downloads, clones and tars; see stored_sources.hpp.
#include "packager/builds/stored_sources.hpp"

#include "packager/builds/source_tree.hpp"
#include "packager/network/fetch.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

std::vector<bundle::Digest> store_sources(const std::vector<SourcePackage>& sources, const BuildTools& tools,
                                          const Cache& cache, const fs::path& scratch, bundle::Progress& progress) {
  std::vector<Download> downloads;
  std::vector<bundle::Digest> digests;
  for (const SourcePackage& source : sources) {
    if (source.kind == SourceKind::Archive)
      downloads.push_back({.name = source.title() + " (source)",
                           .url = tools.index_logins.as_written(source.url),
                           .sha256 = *source.sha256});
    digests.push_back(source.kind == SourceKind::Archive
                          ? *source.sha256
                          : store_source(source, cache, scratch, tools.logins, progress));
  }
  if (!downloads.empty()) fetch(downloads, cache, progress, {.logins = tools.index_logins});
  return digests;
}

BuildOrder order_of(const SourcePackage& source, const bundle::Digest& archive, const BuildTools& tools,
                    const Cache& cache) {
  BuildOrder order{.name = source.name,
                   .version = source.version,
                   .scm_version = source.kind == SourceKind::Git ? source.version : "",
                   .archive = cache.path(archive),
                   .subdirectory = source.subdirectory,
                   .again = false,
                   .requirements = {}};
  if (const auto extras = tools.extras.find(source.name); extras != tools.extras.end()) order.extras = extras->second;
  return order;
}

}  // namespace sealift::packager
