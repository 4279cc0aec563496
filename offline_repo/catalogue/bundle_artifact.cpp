// SPDX-License-Identifier: Apache-2.0
// See bundle_artifact.hpp. The seal is read and verified again: what was parsed has one spelling, so that the text of
// what held is the file's bytes.
#include "offline_repo/catalogue/bundle_artifact.hpp"

#include <algorithm>
#include <utility>

#include "bundle/core/json.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Error;
using bundle::ErrorCode;
using bundle::Json;

constexpr std::string_view kEmptyConfig = "{}";  // the OCI image specification's empty descriptor

// One volume at a time, of whichever bundle: a server has better things to do.
std::mutex& turn_to_read() {
  static std::mutex turn;
  return turn;
}

Json descriptor_of(std::string_view media_type, const bundle::Digest& sha256, std::uint64_t size) {
  return {{"mediaType", media_type}, {"digest", "sha256:" + sha256.hex()}, {"size", size}};
}

std::string seal_of(const bundle::VerifiedBundle& in) {
  bundle::OpenBundle opened = bundle::open(in.folder() / (in.manifest().stem() + std::string(bundle::kSealSuffix)));
  opened.ask = [](const bundle::Volume&, const Error&) { return std::nullopt; };
  const bundle::VerifiedBundle again =
      bundle::verify(opened, {.state = in.trust(), .allow_downgrade = true}, bundle::Time{});
  if (again.identity() != in.identity())
    throw Error(ErrorCode::Conflict,
                {.what = "another bundle has taken this one's place", .where = opened.seal_path.string()});
  return bundle::write_seal(opened.seal);
}

std::string chunk_list_of(const bundle::VerifiedBundle& in) {
  std::string text;
  for (const bundle::Digest& digest : in.payload().digests()) text += bundle::as_text(digest.bytes);
  return text;
}

// A volume holds whole chunks. Null when it was stopped.
std::optional<bundle::Digest> digest_of_volume(const bundle::PayloadReader& payload, std::uint64_t begin,
                                               std::uint64_t size, const std::stop_token& stop) {
  bundle::Hasher hasher;
  bundle::ChunkBuffer memory;
  const bundle::ChunkLayout& layout = payload.layout();
  for (std::uint64_t index = layout.from(begin); index < layout.count() && layout.begin_of(index) < begin + size;
       ++index) {
    if (stop.stop_requested()) return std::nullopt;
    const std::lock_guard lock(turn_to_read());
    payload.will_need(index + 1);
    memory = payload.chunk(index, std::move(memory));
    hasher.update(memory.view());
  }
  return hasher.finish();
}

}  // namespace

std::string artifact_manifest(const bundle::Manifest& manifest, const std::vector<ArtifactLayer>& layers) {
  Json list = Json::array();
  for (const ArtifactLayer& layer : layers) {
    Json one = descriptor_of(layer.media_type, layer.sha256, layer.size);
    one["annotations"] = {{"org.opencontainers.image.title", layer.title}};
    list.push_back(std::move(one));
  }
  return bundle::write_json(
      {{"schemaVersion", 2},
       {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
       {"artifactType", "application/vnd.sealift.bundle.v2"},
       {"config", descriptor_of("application/vnd.oci.empty.v1+json", bundle::sha256(bundle::as_bytes(kEmptyConfig)),
                                kEmptyConfig.size())},
       {"layers", std::move(list)},
       {"annotations",
        {{"org.opencontainers.image.created", manifest.created},
         {"org.opencontainers.image.title", manifest.stem()},
         {"org.opencontainers.image.version", std::to_string(manifest.version)}}}});
}

std::shared_ptr<const BundleArtifact::Parts> BundleArtifact::parts() {
  const std::lock_guard lock(guard_);
  if (parts_ || !fault_.empty() || thread_.joinable()) return parts_;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::shared_ptr<const Parts> made;
    std::string why;
    try {
      made = read(stop);
    } catch (const std::exception& error) {
      why = error.what();
    }
    const std::lock_guard done(guard_);
    parts_ = std::move(made);
    fault_ = std::move(why);
  });
  return nullptr;
}

std::string BundleArtifact::fault() const {
  const std::lock_guard lock(guard_);
  return fault_;
}

std::uint64_t BundleArtifact::seconds_to_read() const {
  return std::min<std::uint64_t>(1 + (in_->manifest().payload.size >> 29), 60);  // half a gibibyte a second
}

void BundleArtifact::wait() {
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const BundleArtifact::Parts> BundleArtifact::read(const std::stop_token& stop) const {
  const bundle::Manifest& manifest = in_->manifest();
  const auto made = std::make_shared<Parts>();
  std::vector<ArtifactLayer> layers;
  const auto add_text = [&](std::string title, std::string type, std::string bytes) {
    const auto text = std::make_shared<const std::string>(std::move(bytes));
    const bundle::Digest sha256 = bundle::sha256(bundle::as_bytes(*text));
    made->texts.emplace(sha256.hex(), text);
    if (!title.empty()) layers.push_back({std::move(title), std::move(type), text->size(), sha256});
  };
  add_text({}, {}, std::string(kEmptyConfig));
  add_text(manifest.stem() + std::string(bundle::kSealSuffix), "application/vnd.sealift.bundle.seal.v1", seal_of(*in_));
  add_text(manifest.stem() + std::string(bundle::kChunksSuffix), "application/vnd.sealift.bundle.chunks.v1",
           chunk_list_of(*in_));
  std::uint64_t begin = 0;
  made->entries.reserve(manifest.payload.volumes.size());  // they are pointed at
  for (const bundle::Volume& volume : manifest.payload.volumes) {
    const std::optional<bundle::Digest> sha256 = digest_of_volume(in_->payload(), begin, volume.size, stop);
    if (!sha256) return nullptr;
    layers.push_back({volume.name, "application/vnd.sealift.bundle.volume.v1", volume.size, *sha256});
    bundle::Entry& entry = made->entries.emplace_back();
    entry.path = bundle::SafePath::parse(volume.name, "a volume");
    entry.size = entry.stored_size = volume.size;
    entry.sha256 = entry.stored_sha256 = *sha256;
    entry.offset = begin;
    made->volumes.emplace(sha256->hex(),
                          ServedFile{.size = volume.size, .sha256 = *sha256, .in = in_, .entry = &entry});
    begin += volume.size;
  }
  made->manifest = std::make_shared<const std::string>(artifact_manifest(manifest, layers));
  made->digest = bundle::sha256(bundle::as_bytes(*made->manifest));
  return made;
}

}  // namespace sealift::offline_repo
