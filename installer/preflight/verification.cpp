// SPDX-License-Identifier: Apache-2.0
// bundle::verify decides about seal and manifest; this reads every chunk, with a progress line. All bad chunks are
// collected, since a scratched disc rarely has only one and is burnt again once.
#include "installer/preflight/verification.hpp"

#include <algorithm>

#include "installer/preflight/published.hpp"

namespace sealift::installer {

Verification verify_every_byte(const bundle::OpenBundle& opened, const bundle::Trust& trust, bundle::Time now,
                               unsigned threads, bundle::Progress& progress, bool deep) {
  const bundle::VerifiedBundle bundle = bundle::verify(opened, trust, now);
  const bundle::Manifest& manifest = bundle.manifest();
  progress.begin("verifying", manifest.payload.size);
  std::vector<bundle::Error> failures =
      bundle::check_every_chunk(bundle, threads, [&progress](std::uint64_t bytes) { progress.add(bytes); });
  progress.end();
  deep = deep && failures.empty();
  if (deep) failures = check_published(bundle, threads, progress);
  return {.name = manifest.name,
          .version = manifest.version,
          .channel = manifest.channel,
          .created = manifest.created,
          .target = manifest.target,
          .identity = bundle.identity(),
          .signers = bundle.signers(),
          .root = bundle.root_name(),
          .warnings = bundle.warnings(),
          .entries = manifest.entries.size(),
          .absent = static_cast<std::uint64_t>(std::count_if(manifest.entries.begin(), manifest.entries.end(),
                                                             [](const bundle::Entry& one) { return one.absent; })),
          .base = manifest.base,
          .volumes = manifest.payload.volumes.size(),
          .chunks = manifest.payload.chunk_count(),
          .bytes = manifest.payload.size,
          .deep = deep,
          .failures = std::move(failures)};
}

}  // namespace sealift::installer
