// SPDX-License-Identifier: Apache-2.0
// Downloads, clones and tars; see stored_sources.hpp.
#include "packager/builds/stored_sources.hpp"

#include <algorithm>
#include <cctype>

#include "packager/builds/build_step.hpp"
#include "packager/builds/source_build.hpp"
#include "packager/builds/source_tree.hpp"
#include "packager/network/fetch.hpp"
#include "packager/resolve/metadata_headers.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

std::vector<bundle::Digest> store_sources(const std::vector<SourcePackage>& sources, const GitLogins& logins,
                                          const Cache& cache, const fs::path& scratch, bundle::Progress& progress) {
  std::vector<Download> downloads;
  std::vector<bundle::Digest> digests;
  for (const SourcePackage& source : sources) {
    if (source.kind == SourceKind::Archive)
      downloads.push_back({.name = source.title() + " (source)", .url = source.url, .sha256 = *source.sha256});
    digests.push_back(source.kind == SourceKind::Archive ? *source.sha256
                                                         : store_source(source, cache, scratch, logins));
  }
  if (!downloads.empty()) fetch(downloads, cache, progress);
  return digests;
}

fs::path history_of(const SourcePackage& source, const fs::path& scratch) {
  return source.kind == SourceKind::Git && source.version.empty() ? clone_of(source, scratch) / ".git" : fs::path();
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

void learn_version(BuildOrder& order, const fs::path& history, const BuildTools& tools, const fs::path& place) {
  if (history.empty()) return;
  order.history = history;
  if (const std::optional<std::string> metadata = prepare_metadata(order, tools, place)) {
    order.scm_version = MetadataHeaders(*metadata).first("Version");
    if (order.scm_version.size() > 200 || std::any_of(order.scm_version.begin(), order.scm_version.end(), [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) == 0 &&
                 std::string_view(".+!_-").find(c) == std::string_view::npos;
        }))
      refuse_build(order, bundle::ErrorCode::Format, "the build tells a version that is none", order.scm_version);
  } else {
    const BuiltWheel told = build_wheel(order, tools, place);
    if (const auto name = bundle::parse_wheel_name(told.file.filename().string())) order.scm_version = name->version;
  }
  order.history.clear();
}

}  // namespace sealift::packager
