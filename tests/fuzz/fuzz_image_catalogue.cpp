// SPDX-License-Identifier: Apache-2.0
// A catalogue of images that is accepted has one spelling, and each of its blobs is a file of the manifest.
#include "sealift/bundle/manifest/image_catalogue.hpp"

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  static const Manifest manifest = manifest_of({TinyImage{}, TinyImage{.tag = "2", .docker = true}});
  accepted([&] {
    const ImageCatalogue catalogue = parse_image_catalogue(text, manifest, "catalogue");
    must(write_image_catalogue(catalogue) == text, "there is one spelling");
    for (const CarriedImage& image : catalogue) {
      must(is_image_name(image.name) && is_image_tag(image.tag), "a name is safe in a path and in a URL");
      for (const Digest& blob : image.blobs) {
        const Entry* entry = manifest.find(SafePath::parse(image_blob_entry(blob), ""));
        must(entry != nullptr && entry->kind == EntryKind::File && entry->sha256 == blob, "a blob is an entry");
      }
    }
  });
}
