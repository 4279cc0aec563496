// SPDX-License-Identifier: Apache-2.0
// The backend's hook, else the wheel; see source_metadata.hpp.
#include "packager/builds/source_metadata.hpp"

#include "bundle/host/scratch_folder.hpp"
#include "packager/builds/build_memory.hpp"
#include "packager/builds/build_place.hpp"
#include "packager/builds/stored_sources.hpp"
#include "packager/resolve/metadata_headers.hpp"
#include "sealift/bundle/wheel/wheel.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

// As the source's backend tells it; nothing when it cannot.
std::optional<std::string> told(const SourcePackage& source, const bundle::Digest& archive, const BuildTools& tools,
                                const std::string& tool_names, const Cache& cache) {
  const BuildPlace place(cache, archive);
  const BuildOrder order = order_of(source, archive, tools, cache);
  const BuildMemory memory(cache, archive, order, tools, tool_names);
  std::optional<std::string> metadata = memory.recall_metadata();
  if (metadata) return metadata;
  metadata = prepare_metadata(order, tools, place.path());
  if (metadata) memory.remember_metadata(*metadata);
  return metadata;
}

SourceMetadata checked(const SourcePackage& source, const std::string& metadata) {
  const MetadataHeaders headers(metadata);
  if (const std::string name = headers.first("Name"); bundle::normalized_project_name(name) != source.name)
    throw bundle::Error(bundle::ErrorCode::Conflict,
                        {.what = "the source is of another package", .expected = source.title(), .got = name});
  return metadata_of(source.name, source.version.empty() ? headers.first("Version") : source.version, metadata);
}

}  // namespace

SourceMetadata metadata_of_built(const LockedWheel& wheel, const Cache& cache,
                                 const std::vector<StartupRule>& startup_files) {
  bundle::FileSource bytes(cache.path(wheel.sha256));
  const bundle::Wheel opened(bytes, wheel.file_name, allowed_files(startup_files, wheel.name));
  return metadata_of(wheel.name, wheel.version, opened.metadata());
}

std::vector<SourceMetadata> read_metadata(const std::vector<SourcePackage>& sources, const BuildTools& tools,
                                          const bundle::Target& target, const Cache& cache, bundle::Progress& progress,
                                          const WhoNeeds& who_needs, const std::vector<StartupRule>& startup_files) {
  const bundle::ScratchFolder scratch("sources", cache.scratch());
  const std::vector<bundle::Digest> digests = store_sources(sources, tools, cache, scratch.path(), progress);
  const std::string tool_names = describe_tools(tools);
  std::vector<SourceMetadata> all(sources.size());
  std::vector<std::size_t> silent;
  BuildFailures failures(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    failures.collect(sources[i], [&] {
      if (const auto metadata = told(sources[i], digests[i], tools, tool_names, cache))
        all[i] = checked(sources[i], *metadata);
      else
        silent.push_back(i);
    });
  failures.throw_any(tools, who_needs);
  for (const std::size_t i : silent) {
    const BuiltWheels built = build_sources({sources[i]}, tools, target, cache, progress, who_needs, startup_files);
    all[i] = metadata_of_built(built.wheels.at(0), cache, startup_files);
  }
  return all;
}

}  // namespace sealift::packager
