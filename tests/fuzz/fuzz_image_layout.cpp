// SPDX-License-Identifier: Apache-2.0
// What a registry says of an image: its manifest, or a list of manifests, in front of the first NUL; behind it the
// configuration. What is accepted names blobs that are there.
#include "packager/images/image_layout.hpp"

#include "packager/files/cache.hpp"
#include "sealift/bundle/manifest/image_catalogue.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  static const TempDir dir;
  static const TinyImage image;
  static const bool written = [] {
    write_skopeo_folder(dir / "image", image);
    return true;
  }();
  must(written, "the blobs are there");
  const packager::ImagePlatform platform = packager::image_platform("x86_64");
  const std::string manifest(text.substr(0, text.find('\0')));
  accepted([&] {
    if (const auto listed = packager::listed_manifests(manifest, platform, "docker://h/a"))
      must(!listed->empty(), "a list has one for the platform");
  });
  write_file(dir / "image/manifest.json", manifest);
  accepted([&] {
    const packager::ImageLayout layout =
        packager::read_image_layout(dir / "image", platform, "docker://h/a",
                                    [](const std::filesystem::path& blob) { return packager::digest_of_file(blob); });
    must(layout.manifest.sha256 == bundle::sha256(bundle::as_bytes(manifest)), "a manifest is its bytes");
    must(layout.manifest.media_type == bundle::kOciManifestType ||
             layout.manifest.media_type == bundle::kDockerManifestType,
         "a manifest is of a kind that is served");
    must(!layout.blobs.empty() && layout.blobs.size() <= bundle::kMaxImageBlobs, "an image has a few blobs");
    for (const packager::LockedBlob& blob : layout.blobs)
      must(std::filesystem::file_size(dir / "image" / blob.sha256.hex()) == blob.size, "a blob is there");
  });
}
