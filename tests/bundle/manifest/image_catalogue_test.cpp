// SPDX-License-Identifier: Apache-2.0
// The catalogue of images reads back as it was written, in one spelling; each rule has a text that breaks only that
// rule.
#include "sealift/bundle/manifest/image_catalogue.hpp"

#include "bundle/core/json.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

Digest image_digest(const std::string& text) {
  return sha256(as_bytes(text));
}

ImageCatalogue two_images() {
  return {{.name = "org/app",
           .tag = "1.0",
           .reference = "localhost:5000/org/app@sha256:" + std::string(64, 'a'),
           .media_type = std::string(kOciManifestType),
           .manifest = image_digest("m1"),
           .blobs = {image_digest("config"), image_digest("layer")}},
          {.name = "org/app",
           .tag = "v2",
           .reference = {},
           .media_type = std::string(kDockerManifestType),
           .manifest = image_digest("m2"),
           .blobs = {image_digest("config"), image_digest("config")}}};
}

// Blobs m1, m2, config and layer; one that is a program's tree, and one of which the path says another digest.
Manifest image_manifest() {
  Manifest made;
  for (const char* text : {"m1", "m2", "config", "layer", "tree"}) {
    Entry entry{.path = SafePath::parse(image_blob_entry(image_digest(text)), ""), .size = 2};
    entry.sha256 = image_digest(text);
    if (std::string_view(text) == "tree") entry.kind = EntryKind::Tree;
    made.entries.push_back(entry);
  }
  Entry other{.path = SafePath::parse(image_blob_entry(image_digest("other")), ""), .size = 2};
  other.sha256 = image_digest("config");
  made.entries.push_back(other);
  std::sort(made.entries.begin(), made.entries.end(), [](const Entry& a, const Entry& b) { return a.path < b.path; });
  return made;
}

ImageCatalogue parsed_images(const std::string& text) {
  return parse_image_catalogue(text, image_manifest(), "images");
}

std::string changed_images(const char* pointer, const Json& value) {
  Json json = Json::parse(write_image_catalogue(two_images()));
  json[Json::json_pointer(pointer)] = value;
  return write_json(json) + "\n";
}

}  // namespace

TEST_CASE("a catalogue of images reads back as it was written, and its text is one") {
  const std::string text = write_image_catalogue(two_images());
  const ImageCatalogue read = parsed_images(text);
  REQUIRE(read.size() == 2);
  CHECK(read[0].tag == "1.0");
  CHECK(read[1].blobs.size() == 1);
  CHECK(write_image_catalogue(read) == text);
  ImageCatalogue turned = two_images();
  std::swap(turned[0], turned[1]);
  CHECK(write_image_catalogue(turned) == text);
  CHECK(text.ends_with("}\n"));
}

TEST_CASE("a catalogue of images with one fault is refused for it") {
  CHECK_REFUSED(parsed_images(changed_images("/images/0/name", "Org/app")), Format, "name of an image");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/name", "../app")), Format, "name of an image");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/name", "bundles/app")), Format, "name of an image");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/tag", "..")), Format, "tag of an image");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/tag", "v2")), Format, "one name and tag");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/reference", "a b")), Format, "comes from");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/media_type", "text/html")), Format, "media type");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/manifest", image_digest("none").hex())), Format, "no file");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/manifest", image_digest("layer").hex())), Format,
                "blobs lack its manifest");
  for (const char* other : {"tree", "other", "none"})
    CHECK_REFUSED(parsed_images(changed_images("/images/0/blobs/0", image_digest(other).hex())), Format, "no file");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/blobs/0", "../../etc/passwd")), Format, "not a SHA-256");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/blobs", Json::array())), Format, "1 to 1000");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/blobs",
                                             Json(std::vector<std::string>(1001, image_digest("layer").hex())))),
                Format, "blobs");
  CHECK_REFUSED(parsed_images(changed_images("/images/0/more", 1)), Format, "more");
  CHECK_REFUSED(parsed_images(changed_images("/format", 2)), CannotCheck, "format");
  CHECK_REFUSED(parsed_images(write_image_catalogue(two_images()) + "\n"), Format, "spelling");
  Manifest large = image_manifest();
  for (Entry& entry : large.entries) entry.size = kMaxImageManifest + 1;
  CHECK_REFUSED(parse_image_catalogue(write_image_catalogue(two_images()), large, "images"), Format, "4 MiB");
}

TEST_CASE("names and tags are those that registries take") {
  for (const char* good : {"a", "org/app", "a.b/c_d/e__f/g---h", "0/1"}) CHECK(is_image_name(good));
  for (const char* bad : {"", "/", "a/", "/a", "a//b", "A", "a..b", "a___b", "-a", "a-", "a b", "a:b", "\xc3\xa9", "..",
                          "c/prod/app", "b/x", "bundles/x", "bundles"})
    CHECK_FALSE(is_image_name(bad));
  CHECK(is_repository_name("bundles/env"));
  CHECK_FALSE(is_repository_name(std::string(201, 'a')));
  for (const char* good : {"1.0", "latest", "_x", "A-b_c.d"}) CHECK(is_image_tag(good));
  for (const char* bad : {"", ".x", "-x", "a/b", "a:b", "a b"}) CHECK_FALSE(is_image_tag(bad));
  CHECK_FALSE(is_image_tag(std::string(129, 'a')));
}
