// SPDX-License-Identifier: Apache-2.0
// bundle::verify decides about seal and manifest; this reads every chunk, with a progress line. All bad chunks are
// collected, since a scratched disc rarely has only one and is burnt again once.
#include "installer/preflight/verification.hpp"

#include <algorithm>
#include <utility>

#include "installer/preflight/published.hpp"

namespace sealift::installer {

namespace {

// Looks at every file; a volume that is missing or cut short is no end of it.
bundle::Damage survey(const bundle::VerifiedBundle& bundle, const bundle::OpenBundle& opened, unsigned threads,
                      bundle::Progress& progress) {
  std::vector<std::filesystem::path> folders{opened.folder};
  folders.insert(folders.end(), opened.more_folders.begin(), opened.more_folders.end());
  bundle::DamagedPayload payload(bundle, std::move(folders));
  progress.begin("verifying", payload.bytes_to_survey());
  bundle::Damage damage = payload.survey(threads, [&progress](std::uint64_t bytes) { progress.add(bytes); });
  progress.end();
  return damage;
}

// The bundle, whatever its volumes are if there is recovery data for them.
bundle::VerifiedBundle open_damaged(bundle::OpenBundle opened, const bundle::Trust& trust, bundle::Time now) {
  const bundle::VolumeAsker asked =
      std::exchange(opened.ask, [](const bundle::Volume&, const bundle::Error&) { return std::nullopt; });
  bundle::VerifiedBundle bundle = bundle::verify(opened, trust, now);
  if (bundle.manifest().payload.recovery || bundle.payload().all_there()) return bundle;
  opened.ask = asked;
  return bundle::verify(opened, trust, now);
}

}  // namespace

Verification verify_every_byte(const bundle::OpenBundle& opened, const bundle::Trust& trust, bundle::Time now,
                               unsigned threads, bundle::Progress& progress, bool deep) {
  const bundle::VerifiedBundle bundle = open_damaged(opened, trust, now);
  const bundle::Manifest& manifest = bundle.manifest();
  std::optional<bundle::Damage> damage;
  std::vector<bundle::Error> failures;
  if (manifest.payload.recovery) {
    damage = survey(bundle, opened, threads, progress);
    failures = damage->faults;
  } else {
    progress.begin("verifying", manifest.payload.size);
    failures = bundle::check_every_chunk(bundle, threads, [&progress](std::uint64_t bytes) { progress.add(bytes); });
    progress.end();
  }
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
          .sandboxed = wheels_built(manifest, bundle::WheelBuild::Sandboxed),
          .unsandboxed = wheels_built(manifest, bundle::WheelBuild::Unsandboxed),
          .shared = packages_shared(manifest),
          .volumes = manifest.payload.volumes.size(),
          .chunks = manifest.payload.chunk_count(),
          .bytes = manifest.payload.size,
          .damage = std::move(damage),
          .deep = deep,
          .failures = std::move(failures)};
}

}  // namespace sealift::installer
