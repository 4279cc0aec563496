// SPDX-License-Identifier: Apache-2.0
// ask for the manifest -> choose the platform -> fetch it by digest -> check -> cache; see lock_image.hpp. `dir:` keeps
// manifests and layers byte for byte, whatever kind they are.
#include "packager/images/lock_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "bundle/host/scratch_folder.hpp"
#include "packager/files/known_chunks.hpp"
#include "packager/host/own_variables.hpp"
#include "packager/host/process.hpp"
#include "packager/images/image_layout.hpp"
#include "packager/images/oci_folder.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/manifest/image_catalogue.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::string_view kDockerTransport = "docker://";

// Where its users' passwords and its settings lie; both are skopeo's own affair.
std::map<std::string, std::string> skopeo_variables() {
  std::map<std::string, std::string> variables;
  for (const char* name :
       {"REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "CONTAINERS_REGISTRIES_CONF"})
    if (const std::optional<std::string> value = own_variable(name)) variables[name] = *value;
  return variables;
}

std::string run_skopeo(const ImageSpec& spec, std::vector<std::string> arguments, std::uint64_t largest_file = 0) {
  arguments.insert(arguments.begin(), "skopeo");
  ProcessResult result = run_process(arguments, skopeo_variables(), {.largest_file = largest_file});
  if (result.exit_code == 0) return std::move(result.out);
  static constexpr std::string_view kNoBlob = "reading blob sha256:", kNoFile = "no such file or directory";
  if (const std::size_t blob = result.err.find(kNoBlob);
      blob != std::string::npos && result.err.find(kNoFile, blob) != std::string::npos)
    throw Error(ErrorCode::Missing,
                {.what = "a blob of an image is not there",
                 .where = spec.source,
                 .expected = result.err.substr(blob + std::string_view("reading blob ").size(), 71),
                 .next = "copy the image there again, whole: skopeo copy docker://… " +
                         spec.source.substr(0, spec.source.find(':', spec.source.find(':') + 1)) + ":TAG"});
  throw Error(ErrorCode::Network,
              {.what = "skopeo cannot fetch an image",
               .where = spec.source,
               .got = result.err.substr(result.err.size() - std::min<std::size_t>(result.err.size(), 1000)),
               .next = "check source, network and proxy; log in with `skopeo login HOST` where the registry asks"});
}

void require_skopeo() {
  if (!find_program("skopeo").empty()) return;
  throw Error(ErrorCode::Missing, {.what = "skopeo, which fetches container images, is not on this machine",
                                   .where = "PATH",
                                   .expected = "skopeo 1.9 or newer",
                                   .next = "apt install skopeo, and lock again; `create` does not need it"});
}

void require_digest(const ImageSpec& spec, const Digest& expected, const Digest& got) {
  if (expected == got) return;
  throw Error(ErrorCode::Digest, {.what = "an image is not what its digest says",
                                  .where = spec.source,
                                  .expected = "sha256:" + expected.hex(),
                                  .got = "sha256:" + got.hex(),
                                  .next = "run the same command again; its tag may have moved meanwhile"});
}

// "HOST/NAME@sha256:…" of "docker://HOST/NAME[:TAG|@sha256:…]".
std::string pinned_reference(const std::string& source, const Digest& digest) {
  if (!source.starts_with(kDockerTransport)) return {};
  std::string place = source.substr(kDockerTransport.size());
  place.resize(std::min(place.find('@'), place.size()));
  if (const std::size_t colon = place.find(':', place.rfind('/')); colon != place.npos) place.resize(colon);
  return place + "@sha256:" + digest.hex();
}

// What skopeo may write in one file: a registry can send more of a layer than its manifest says, without an end, and
// skopeo compares digests only behind it. 0 for a source on this machine.
std::uint64_t largest_of(const ImageSpec& spec, const std::string& top, const std::string& reference,
                         const std::optional<std::vector<Digest>>& listed) {
  if (reference.empty()) return 0;
  std::uint64_t largest = listed ? 0 : largest_blob(top, spec.source);
  const std::string place = reference.substr(0, reference.find('@'));
  for (const Digest& digest : listed.value_or(std::vector<Digest>{})) {
    const std::string manifest =
        run_skopeo(spec, {"inspect", "--raw", std::string(kDockerTransport) + place + "@sha256:" + digest.hex()});
    if (bundle::sha256(bundle::as_bytes(manifest)) == digest)
      largest = std::max(largest, largest_blob(manifest, spec.source));
  }
  return std::max<std::uint64_t>(largest, bundle::kMaxImageManifest) + 1;
}

[[noreturn]] void refuse_failed_copy(const ImageSpec& spec, const fs::path& folder, std::uint64_t largest,
                                     const Error& error) {
  std::error_code none;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, none))
    if (largest > 0 && file.is_regular_file(none) && file.file_size(none) >= largest)
      throw Error(ErrorCode::Digest, {.what = "a registry sends more of a blob than the image's manifest says",
                                      .where = spec.source,
                                      .expected = fmt::format("less than {} bytes", largest),
                                      .next = "do not use this registry; tell its owner"});
  throw error;
}

void adopt_blob(const fs::path& file, const Digest& digest, const Cache& cache) {
  if (!cache.contains(digest)) cache.adopt(file, digest);  // `create` checks what is there
}

LockedImage lock_one(const JobImage& job, const ImagePlatform& platform, const Cache& cache,
                     bundle::Progress& progress) {
  const ImageSpec& spec = job.spec;
  progress.note("asking for the image " + spec.title());
  const bundle::ScratchFolder scratch("image", cache.scratch());
  const std::string source = one_image_of(spec.source, platform, scratch.path());
  const std::string top = run_skopeo(spec, {"inspect", "--raw", source});
  const Digest top_digest = bundle::sha256(bundle::as_bytes(top));
  if (job.digest) require_digest(spec, *job.digest, top_digest);
  const auto listed = listed_manifests(top, platform, spec.source);

  const std::string reference = pinned_reference(spec.source, top_digest);
  const std::string pinned = reference.empty() ? source : std::string(kDockerTransport) + reference;
  const fs::path folder = scratch / "layout";
  const std::uint64_t largest = largest_of(spec, top, reference, listed);
  try {
    run_skopeo(spec,
               {"--override-os", "linux", "--override-arch", platform.architecture, "copy", "--quiet",
                "--preserve-digests", "--remove-signatures", pinned, "dir:" + folder.string()},
               largest);
  } catch (const Error& error) {
    refuse_failed_copy(spec, folder, largest, error);
  }
  const KnownChunks known(cache);
  ImageLayout layout =
      read_image_layout(folder, platform, spec.source, [&](const fs::path& blob) { return known.learn(blob); });
  const Digest got = layout.manifest.sha256;
  if (!listed)
    require_digest(spec, top_digest, got);
  else if (std::find(listed->begin(), listed->end(), got) == listed->end())
    require_digest(spec, listed->front(), got);
  adopt_blob(folder / "manifest.json", got, cache);
  for (const LockedBlob& blob : layout.blobs) adopt_blob(folder / blob.sha256.hex(), blob.sha256, cache);
  LockedImage image{.name = spec.name,
                    .tag = spec.tag,
                    .reference = reference,
                    .manifest = std::move(layout.manifest),
                    .blobs = std::move(layout.blobs)};
  progress.note(fmt::format("{}: sha256:{}, {}", spec.title(), got.hex(), bundle::human_size(image.size())));
  return image;
}

}  // namespace

std::vector<LockedImage> lock_images(const std::vector<JobImage>& jobs, const std::string& arch, const Cache& cache,
                                     bundle::Progress& progress) {
  if (jobs.empty()) return {};
  require_skopeo();
  std::vector<LockedImage> images;
  for (const JobImage& job : jobs) images.push_back(lock_one(job, image_platform(arch), cache, progress));
  std::sort(images.begin(), images.end(), [](const LockedImage& a, const LockedImage& b) {
    return std::tie(a.name, a.tag) < std::tie(b.name, b.tag);
  });
  return images;
}

}  // namespace sealift::packager
