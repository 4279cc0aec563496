// SPDX-License-Identifier: Apache-2.0
// What a registry may have sent: each fault is refused before anything of it is used, and no name on disk is its
// choice.
#include "packager/images/image_layout.hpp"

#include "packager/files/cache.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

const ImagePlatform kAmd64 = image_platform("x86_64");

struct LayoutDesk {
  TempDir dir;
  TinyImage image;

  fs::path folder() const { return dir / "layout"; }
  void write() const { write_skopeo_folder(folder(), image); }
  // With another manifest than the image's own.
  ImageLayout read_with(const std::string& manifest) const {
    fs::remove(folder() / "manifest.json");
    write_file(folder() / "manifest.json", manifest);
    return read();
  }
  ImageLayout read() const {
    return read_image_layout(folder(), kAmd64, "docker://host/app",
                             [](const fs::path& blob) { return digest_of_file(blob); });
  }
  std::string replaced(const std::string& what, const std::string& by) const {
    std::string text = image.manifest();
    text.replace(text.find(what), what.size(), by);
    return text;
  }
};

}  // namespace

TEST_CASE("an image is read with each blob's digest, size and type, whichever kind it is") {
  LayoutDesk desk;
  SUBCASE("of OCI's kind") {}
  SUBCASE("of Docker's kind") {
    desk.image.docker = true;
  }
  SUBCASE("one layer twice") {
    desk.image.layers = {"twice", "twice"};
  }
  desk.write();
  const ImageLayout layout = desk.read();
  CHECK(layout.manifest.sha256.hex() == hex_of(desk.image.manifest()));
  CHECK(layout.manifest.media_type == desk.image.media_type());
  CHECK(layout.manifest.size == desk.image.manifest().size());
  CHECK(layout.blobs.size() == (desk.image.layers[0] == "twice" ? 2 : 3));
  CHECK(std::is_sorted(layout.blobs.begin(), layout.blobs.end(),
                       [](const LockedBlob& a, const LockedBlob& b) { return a.sha256 < b.sha256; }));
}

TEST_CASE("a manifest that does not say what it is, is what its configuration is of") {
  for (const bool docker : {false, true}) {
    LayoutDesk desk;
    desk.image.docker = docker;
    desk.write();
    const std::string type = R"("mediaType":")" + desk.image.media_type() + R"(",)";
    CHECK(desk.read_with(desk.replaced(type, "")).manifest.media_type == desk.image.media_type());
  }
}

TEST_CASE("an image with a wrong, short or missing blob is refused by the blob's digest") {
  LayoutDesk desk;
  desk.write();
  const fs::path blob = desk.folder() / hex_of("second");
  fs::remove(blob);
  SUBCASE("missing") {
    CHECK_REFUSED(desk.read(), Missing, hex_of("second"));
  }
  SUBCASE("a link to a file with the right bytes") {
    write_file(desk.dir / "elsewhere", "second");
    fs::create_symlink(desk.dir / "elsewhere", blob);
    CHECK_REFUSED(desk.read(), Missing, hex_of("second"));
  }
  SUBCASE("other bytes") {
    write_file(blob, "SECOND");
    CHECK_REFUSED(desk.read(), Digest, hex_of("second"));
  }
  SUBCASE("larger than it said") {
    write_file(blob, std::string(100'000, 's'));
    CHECK_REFUSED(desk.read(), Digest, "100000 bytes");
  }
}

TEST_CASE("an image whose manifest names a path, another digest or no size is refused") {
  LayoutDesk desk;
  desk.write();
  const std::string digest = "sha256:" + hex_of("second");
  for (const std::string& bad : {std::string("sha256:../../../etc/passwd"), std::string("sha512:") + hex_of("second"),
                                 std::string("sha256:") + std::string(64, 'A'), std::string()})
    CHECK_REFUSED(desk.read_with(desk.replaced(digest, bad)), Format, "SHA-256");
  CHECK_REFUSED(desk.read_with(desk.replaced("\"size\":6", "\"size\":-6")), Format, "no size");
  CHECK_REFUSED(desk.read_with(desk.replaced("\"size\":6", "\"size\":1e99")), Format, "no size");
  CHECK_REFUSED(desk.read_with(desk.replaced("\"size\":6", "\"size\":7")), Digest, "6 bytes");
  CHECK_REFUSED(desk.read_with(desk.replaced("\"schemaVersion\":2", "\"schemaVersion\":1")), Format, "schema version");
  CHECK_REFUSED(desk.read_with(desk.replaced(desk.image.media_type(), "text/html")), Format, "no manifest of an image");
  CHECK_REFUSED(desk.read_with("<html>log in</html>"), Format, "does not parse");
  CHECK_REFUSED(desk.read_with(R"({"schemaVersion":2,"layers":[]})"), Format, "no configuration");
  CHECK_REFUSED(desk.read_with(std::string(200, '[')), Format, "nested");
}

TEST_CASE("an image that is too large to judge is refused before it is read whole") {
  LayoutDesk desk;
  desk.write();
  fs::resize_file(desk.folder() / "manifest.json", bundle::kMaxImageManifest + 1);
  CHECK_THROWS_AS(desk.read(), bundle::Error);
  desk.image.layers.clear();
  for (int i = 0; i < 1001; ++i) desk.image.layers.push_back(std::to_string(i));
  CHECK_REFUSED(desk.read_with(desk.image.manifest()), Format, "1000 blobs");
}

TEST_CASE("an image is for the target's platform, or refused") {
  LayoutDesk desk;
  SUBCASE("another architecture") {
    desk.image.architecture = "arm64";
  }
  SUBCASE("another system") {
    desk.image.os = "windows";
  }
  desk.write();
  CHECK_REFUSED(desk.read(), Platform, "linux/amd64");
}

TEST_CASE("of a list of platforms the target's manifests are meant, and without one the list is refused") {
  const auto list = [](const std::string& architecture) {
    return R"({"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:)" +
           hex_of("m") + R"(","size":1,"platform":{"os":"linux","architecture":")" + architecture + R"("}}]})";
  };
  const auto found = listed_manifests(list("amd64"), kAmd64, "source");
  REQUIRE(found);
  CHECK(found->size() == 1);
  CHECK(found->front().hex() == hex_of("m"));
  CHECK_REFUSED(listed_manifests(list("arm64"), kAmd64, "source"), Platform, "linux/amd64");
  CHECK_FALSE(listed_manifests(TinyImage().manifest(), kAmd64, "source"));
  CHECK(image_platform("aarch64").architecture == "arm64");
}
