// SPDX-License-Identifier: Apache-2.0
// The routes of a container registry as values: images of signed lists, a bundle as an artifact, errors as clients read
// them; and over a socket the byte by which clients try TLS first.
#include "offline_repo/routes/oci_routes.hpp"
#include "bundle/core/json.hpp"
#include "offline_repo/routes/routes.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using namespace sealift::test;
using bundle::Json;

namespace {

// Two images of one repository that share a layer; `docker` is of Docker's kind.
struct Registry {
  TinyImage plain, docker{.tag = "2", .docker = true};
  TempDir dir;
  MadeBundle made;
  Catalogue catalogue;

  explicit Registry(TinyBundle tiny = {.name = "env", .version = 3, .volume_size = 16384}) {
    docker.layers[1] = "third";
    if (tiny.items.size() == 1) tiny.items = image_items({plain, docker});
    made = make_bundle(dir / "bundle", tiny);
    std::vector<bundle::VerifiedBundle> bundles;
    bundles.push_back(bundle::verify(bundle::open(made.folder), made.trusted, kNow));
    catalogue = make_catalogue(std::move(bundles));
  }
  Response ask(const std::string& target, const std::string& method = "GET", const std::string& range = {}) const {
    return respond(catalogue, {.method = method, .target = target, .range = range});
  }
  // The bundle's own repository, once its volumes are read.
  BundleArtifact& artifact() const { return *catalogue.artifacts.at("bundles/env").at("3"); }
};

std::string code_of(const Response& response) {
  CHECK(response.header("Content-Type") == "application/json");
  return Json::parse(std::get<std::string>(response.body))["errors"][0]["code"];
}

std::string bytes_of(const Response& response) {
  if (const auto* text = std::get_if<TextPart>(&response.body))
    return text->text->substr(text->range.first, text->range.count);
  const auto* part = std::get_if<WheelPart>(&response.body);
  if (part == nullptr) return std::get<std::string>(response.body);
  std::string bytes;
  std::uint64_t at = part->wheel->entry->offset + part->range.first, left = part->range.count;
  const bundle::PayloadReader& payload = part->wheel->in->payload();
  while (left > 0) {
    const std::uint64_t index = payload.layout().at(at);
    const bundle::ChunkBuffer chunk = payload.chunk(index);
    const std::string all(bundle::as_text(chunk.view()));
    bytes += all.substr(at - payload.layout().begin_of(index), left);
    left = part->range.count - bytes.size();
    at = part->wheel->entry->offset + part->range.first + bytes.size();
  }
  return bytes;
}

}  // namespace

TEST_CASE("a registry says that it is one, and what it has, in the words of the specification") {
  const Registry registry;
  for (const char* target : {"/v2", "/v2/"}) {
    const Response base = registry.ask(target);
    CHECK(base.status == 200);
    CHECK(base.header("Docker-Distribution-API-Version") == "registry/2.0");
    CHECK(base.header("Content-Type") == "application/json");
  }
  CHECK(bytes_of(registry.ask("/v2/_catalog")) == R"({"repositories":["bundles/env","org/app"]})");
  CHECK(bytes_of(registry.ask("/v2/org/app/tags/list")) == R"({"name":"org/app","tags":["1.0","2"]})");
  const Response page = registry.ask("/v2/org/app/tags/list?n=1");
  CHECK(bytes_of(page) == R"({"name":"org/app","tags":["1.0"]})");
  CHECK(page.header("Link") == "</v2/org/app/tags/list?n=1&last=1.0>; rel=\"next\"");
  const Response last = registry.ask("/v2/org/app/tags/list?n=1&last=1.0");
  CHECK(bytes_of(last) == R"({"name":"org/app","tags":["2"]})");
  CHECK(last.header("Link").empty());
  CHECK(bytes_of(registry.ask("/v2/_catalog?n=0")) == R"({"repositories":[]})");
}

TEST_CASE("a manifest is given by tag and by digest, in its own bytes, type and digest") {
  const Registry registry;
  for (const TinyImage* image : {&registry.plain, &registry.docker}) {
    const std::string digest = "sha256:" + hex_of(image->manifest());
    for (const std::string& reference : {image->tag, digest}) {
      const Response response = registry.ask("/v2/org/app/manifests/" + reference);
      CHECK(response.status == 200);
      CHECK(response.header("Content-Type") == image->media_type());
      CHECK(response.header("Docker-Content-Digest") == digest);
      CHECK(bytes_of(response) == image->manifest());
      CHECK(response.header("Cache-Control") == (reference == digest ? "max-age=365000000, immutable" : "no-cache"));
    }
  }
  CHECK(registry.ask("/v2/org/app/manifests/1.0", "HEAD").body_size() == registry.plain.manifest().size());
}

TEST_CASE("a blob is given whole, by its head and by ranges") {
  const Registry registry;
  const std::string layer = registry.plain.layers[0], target = "/v2/org/app/blobs/sha256:" + hex_of(layer);
  CHECK(bytes_of(registry.ask(target)) == layer);
  CHECK(registry.ask(target).header("Docker-Content-Digest") == "sha256:" + hex_of(layer));
  CHECK(registry.ask(target).header("Content-Type") == "application/octet-stream");
  CHECK(registry.ask(target, "HEAD").body_size() == layer.size());
  const Response part = registry.ask(target, "GET", "bytes=8990-");
  CHECK(part.status == 206);
  CHECK(bytes_of(part) == layer.substr(8990));
  CHECK(registry.ask(target, "GET", "bytes=9000-").status == 416);
  for (const std::string& blob : registry.docker.blobs())
    CHECK(bytes_of(registry.ask("/v2/org/app/blobs/sha256:" + hex_of(blob))) == blob);
}

TEST_CASE("missing images are refused in the errors that clients know") {
  const Registry registry;
  const std::string other = "sha256:" + std::string(64, 'a');
  CHECK(code_of(registry.ask("/v2/org/none/manifests/1.0")) == "NAME_UNKNOWN");
  CHECK(code_of(registry.ask("/v2/org/none/tags/list")) == "NAME_UNKNOWN");
  CHECK(code_of(registry.ask("/v2/org/app/manifests/9")) == "MANIFEST_UNKNOWN");
  CHECK(code_of(registry.ask("/v2/org/app/manifests/" + other)) == "MANIFEST_UNKNOWN");
  CHECK(code_of(registry.ask("/v2/org/app/blobs/" + other)) == "BLOB_UNKNOWN");
  CHECK(code_of(registry.ask("/v2/org/app/blobs/sha256:../../x")) == "UNSUPPORTED");
  CHECK(code_of(registry.ask("/v2/org/app/blobs/sha256:..%2F..%2Fx")) == "DIGEST_INVALID");
  CHECK(code_of(registry.ask("/v2/org/app/blobs/latest")) == "DIGEST_INVALID");
  CHECK(code_of(registry.ask("/v2/org/app/referrers/x")) == "DIGEST_INVALID");
  CHECK(code_of(registry.ask("/v2/../app/blobs/" + other)) == "NAME_UNKNOWN");
  CHECK(code_of(registry.ask("/v2/org/app/blobs/uploads/")) == "UNSUPPORTED");
  const Response post = registry.ask("/v2/org/app/blobs/uploads/", "POST");
  CHECK(post.status == 405);
  CHECK(code_of(post) == "UNSUPPORTED");
  CHECK(post.header("Allow") == "GET, HEAD");
  const Response none = registry.ask("/v2/org/app/referrers/" + other);
  CHECK(none.status == 200);
  CHECK(none.header("Content-Type") == "application/vnd.oci.image.index.v1+json");
  CHECK(Json::parse(bytes_of(none))["manifests"].empty());
  // A blob belongs to its repository, and an entry outside of images is no blob.
  CHECK(code_of(registry.ask("/v2/bundles/env/blobs/sha256:" + hex_of("second"))) == "TOOMANYREQUESTS");
  registry.artifact().wait();
  CHECK(code_of(registry.ask("/v2/bundles/env/blobs/sha256:" + hex_of("second"))) == "BLOB_UNKNOWN");
}

TEST_CASE("a bundle is an artifact of its own files, once its volumes were read, and always the same one") {
  const Registry registry;
  const Response first = registry.ask("/v2/bundles/env/manifests/3");
  CHECK(first.status == 429);
  CHECK(first.header("Retry-After") == "1");
  registry.artifact().wait();
  const Response response = registry.ask("/v2/bundles/env/manifests/3");
  CHECK(response.header("Content-Type") == "application/vnd.oci.image.manifest.v1+json");
  const std::string text = bytes_of(response);
  CHECK(response.header("Docker-Content-Digest") == "sha256:" + hex_of(text));
  CHECK(bytes_of(registry.ask("/v2/bundles/env/manifests/sha256:" + hex_of(text))) == text);
  const Json manifest = Json::parse(text);
  CHECK(manifest["artifactType"] == "application/vnd.sealift.bundle.v2");
  std::map<std::string, std::string> files;
  for (const Json& layer : manifest["layers"]) {
    const Response blob = registry.ask("/v2/bundles/env/blobs/" + layer["digest"].get<std::string>());
    CHECK(blob.body_size() == layer["size"]);
    files[layer["annotations"]["org.opencontainers.image.title"]] = bytes_of(blob);
  }
  CHECK(files.size() == 2 + registry.made.manifest.payload.volumes.size());
  for (const auto& [name, bytes] : files) CHECK(bytes == read_file(registry.made.folder / name));
  CHECK(bytes_of(registry.ask("/v2/bundles/env/blobs/" + manifest["config"]["digest"].get<std::string>())) == "{}");
  const Response part =
      registry.ask("/v2/bundles/env/blobs/" + manifest["layers"][0]["digest"].get<std::string>(), "GET", "bytes=1-2");
  CHECK(part.status == 206);
  CHECK(bytes_of(part) == read_file(registry.made.seal()).substr(1, 2));
  CHECK(code_of(registry.ask("/v2/bundles/env/manifests/4")) == "MANIFEST_UNKNOWN");

  BundleArtifact again(registry.catalogue.sources[0]);
  again.parts();
  again.wait();
  CHECK(*again.parts()->manifest == text);
}

TEST_CASE("an artifact's manifest stays below what registries take, however many volumes a bundle has") {
  bundle::Manifest manifest{.name = std::string(100, 'n'), .version = (std::uint64_t{1} << 53) - 1};
  manifest.created = "2026-01-01T00:00:00Z";
  std::vector<ArtifactLayer> layers;
  for (std::size_t i = 0; i < bundle::kMaxVolumes + 2; ++i)
    layers.push_back({.title = manifest.stem() + ".vol" + std::to_string(10'000 + i),
                      .media_type = "application/vnd.sealift.bundle.volume.v1",
                      .size = bundle::kMaxPayloadSize,
                      .sha256 = {}});
  CHECK(artifact_manifest(manifest, layers).size() < bundle::kMaxImageManifest);
}

TEST_CASE("a bundle with a rotten volume or another seal is no artifact, and says why") {
  TinyBundle tiny{.name = "env", .version = 3};
  tiny.items = image_items({TinyImage{}});
  const Registry registry(tiny);
  std::string bytes = read_file(registry.made.volume(0));
  bytes[5000] ^= 1;
  write_file(registry.made.volume(0), bytes);
  CHECK(registry.ask("/v2/bundles/env/manifests/3").status == 429);
  registry.artifact().wait();
  const Response response = registry.ask("/v2/bundles/env/manifests/3");
  CHECK(response.status == 500);
  CHECK(code_of(response) == "UNKNOWN");
}

TEST_CASE("a bundle in whose place another one of its signer's lies is no artifact, though the volumes are the same") {
  const TempDir dir;
  const bundle::PrivateKey key = bundle::PrivateKey::generate();
  const auto make = [&](const std::string& channel) {
    return make_bundle(dir / channel, {.name = "env", .channel = channel, .items = image_items({TinyImage{}})}, key);
  };
  const MadeBundle made = make("prod"), other = make("dev");
  BundleArtifact artifact(
      std::make_shared<const bundle::VerifiedBundle>(bundle::verify(bundle::open(made.folder), made.trusted, kNow)));
  REQUIRE(read_file(made.volume(0)) == read_file(other.volume(0)));
  write_file(made.seal(), read_file(other.seal()));
  artifact.parts();
  artifact.wait();
  CHECK(artifact.parts() == nullptr);
  CHECK(artifact.fault().find("another bundle has taken this one's place") != std::string::npos);
}

TEST_CASE("an image with a blob that is absent is left out, with the reason, and one with a rotten blob too") {
  TinyBundle tiny{.name = "env", .version = 3};
  tiny.items = image_items({TinyImage{.absent = true}});
  const Registry registry(tiny);
  CHECK(registry.catalogue.images.empty());
  REQUIRE(registry.catalogue.left_out.size() == 1);
  CHECK(registry.catalogue.left_out[0].english.find("org/app:1.0") != std::string::npos);
}

TEST_CASE("a tag is the newest bundle's, and every bundle's digests are there") {
  TempDir dir;
  TinyImage old, fresh;
  fresh.layers = {"fresh"};
  std::vector<Contents> contents;
  for (const auto& [name, created, image] :
       {std::tuple("a", "2026-02-01T00:00:00Z", &fresh), std::tuple("b", "2026-01-01T00:00:00Z", &old)}) {
    const MadeBundle made = make_bundle(dir / name, {.name = name, .created = created, .items = image_items({*image})});
    contents.push_back(read_contents(
        std::make_shared<const bundle::VerifiedBundle>(bundle::verify(bundle::open(made.folder), made.trusted, kNow))));
  }
  const Catalogue catalogue = catalogue_of(contents);
  const auto manifest = [&](const std::string& reference) {
    return bytes_of(respond(catalogue, {.method = "GET", .target = "/v2/org/app/manifests/" + reference}));
  };
  CHECK(manifest("1.0") == fresh.manifest());
  CHECK(manifest("sha256:" + hex_of(old.manifest())) == old.manifest());
}

TEST_CASE("channels and bundles have their own registry, before the name as clients of registries can say it") {
  Live live({.name = "env", .items = image_items({TinyImage{}})});
  const std::string end = "org/app/manifests/1.0";
  for (const std::string view : {"/v2/", "/v2/c/test/", "/v2/b/env-1/", "/c/test/v2/", "/b/env-1/v2/"}) {
    const auto answer = fetch(live.port, view + end);
    CHECK(answer.status == 200);
    CHECK(answer.body == TinyImage().manifest());
  }
  CHECK(fetch(live.port, "/v2/c/none/" + end).status == 404);
  CHECK(fetch(live.port, "/v2/c/test").status == 200);
}

TEST_CASE("a client that tries TLS first is let go at once, not after the time that a request may take") {
  Live live({.name = "env"}, {.idle_timeout = std::chrono::seconds(600), .request_timeout = std::chrono::seconds(600)});
  RawClient client(live.port);
  client.send(std::string("\x16\x03\x01\x02\x00", 5));
  CHECK(client.ended());
}
