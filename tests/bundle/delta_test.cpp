// SPDX-License-Identifier: Apache-2.0
// Deltas on the bytes' side: what the manifest says, what the payload holds, and what the gate hands out.
#include <doctest/doctest.h>

#include "tests/support/hostile/hostile_manifest.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

TinyBundle delta() {
  return {.items = {wheel_item({}),
                    {.path = "files/big", .bytes = std::string(50'000, 'b'), .into = "share/big", .absent = true},
                    {.path = "files/new", .bytes = "new", .into = "share/new", .encoding = Encoding::Zstd}}};
}

VerifiedBundle verified(const MadeBundle& made) {
  return verify(open(made.folder), made.trusted, kNow);
}

Json image_of(const MadeBundle& made) {
  const std::string command = "cd '" + made.folder.string() + "' && cat *.vol* | tar xf -";
  REQUIRE(std::system(command.c_str()) == 0);
  const Json index = Json::parse(read_file(made.folder / "index.json"));
  return Json::parse(
      read_file(made.folder / ("blobs/sha256/" + index["manifests"][0]["digest"].get<std::string>().substr(7))));
}

}  // namespace

TEST_CASE("a delta's manifest says its base and level, reads back, and says nothing of bytes that are not there") {
  const std::string text = write_manifest(good_delta());
  CHECK(parse_manifest(text, "seal") == good_delta());
  CHECK(write_manifest(parse_manifest(text, "seal")) == text);
  const Json json = Json::parse(text);
  CHECK(json["base"] == good_delta().base->hex());
  CHECK(json["installer_level"] == 2);
  CHECK(json["entries"][1]["absent"] == true);
  for (const char* key : {"encoding", "offset", "stored_size", "stored_sha256"})
    CHECK_FALSE(json["entries"][1].contains(key));
}

TEST_CASE("a bundle that uses nothing new stays at level 1 and has no new keys, so older installers take it") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b");
  CHECK(made.manifest.installer_level == 1);
  const std::string text = write_manifest(made.manifest);
  for (const char* key : {"absent", "\"base\"", "left_out"}) CHECK(text.find(key) == text.npos);
  Manifest less = made.manifest;
  less.installer_level = 0;  // as some older packer may have written it
  CHECK(parse_manifest(write_manifest(less), "seal") == as_written(less));
}

TEST_CASE("a delta carries what it lists as carried, and its image names no layer that is not there") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "b", delta());
  CHECK(made.manifest.installer_level == 2);
  CHECK(made.manifest.payload.size < 50'000);
  const VerifiedBundle bundle = verified(made);
  CHECK(check_every_chunk(bundle, 2).empty());
  CHECK(bundle.manifest() == made.manifest);
  const Json image = image_of(made);
  CHECK(image["layers"].size() == 2);
  for (const Json& layer : image["layers"]) {
    const fs::path blob = made.folder / ("blobs/sha256/" + layer["digest"].get<std::string>().substr(7));
    CHECK(fs::file_size(blob) == layer["size"].get<std::uint64_t>());
    CHECK(layer["annotations"]["org.opencontainers.image.title"] != "files/big");
  }
}

TEST_CASE("a delta that carries nothing at all is an image of the empty blob, and still verifies") {
  const TempDir dir;
  TinyBundle tiny = delta();
  for (TinyItem& item : tiny.items) item.absent = true;
  const MadeBundle made = make_bundle(dir / "b", tiny);
  CHECK(check_every_chunk(verified(made), 1).empty());
  const Json image = image_of(made);
  REQUIRE(image["layers"].size() == 1);
  CHECK(image["layers"][0]["mediaType"] == "application/vnd.oci.empty.v1+json");
  CHECK(image["layers"][0] == image["config"]);
  CHECK(read_file(made.folder / ("blobs/sha256/" + image["config"]["digest"].get<std::string>().substr(7))) == "{}");
}

TEST_CASE("the gate has no bytes of an absent entry, and says which") {
  const TempDir dir;
  const VerifiedBundle bundle = verified(make_bundle(dir / "b", delta()));
  const Entry& absent = *bundle.manifest().find(SafePath::parse("files/big", ""));
  CHECK_REFUSED(bundle.stored(absent), Missing, "tiny-1:files/big");
  CHECK_REFUSED(bundle.stream(absent, [](ByteView) {}), Missing, "does not carry");
}

TEST_CASE("files left out of a wheel are part of what is signed, and ask for level 2") {
  const TempDir dir;
  TinyBundle tiny;
  tiny.items[0].left_out = {"bin/x", "lib/y"};
  const MadeBundle made = make_bundle(dir / "b", tiny);
  CHECK(made.manifest.installer_level == 2);
  const Manifest read = parse_manifest(write_manifest(made.manifest), "seal");
  CHECK(read == as_written(made.manifest));
  REQUIRE(read.environment.placements[0].left_out.size() == 2);
  CHECK(read.environment.placements[0].left_out[1].text() == "lib/y");
}
