// SPDX-License-Identifier: Apache-2.0
// [[image]] on its whole way: the job's text, the lock with the real skopeo and with one that lies, the bundle.
#include "packager/images/lock_image.hpp"

#include <cstdlib>

#include "packager/host/process.hpp"
#include "packager/images/image_files.hpp"
#include "packager/pack/contents.hpp"
#include "packager/tables/image_toml.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;

namespace {

std::vector<JobImage> read_images(const std::string& text, const fs::path& folder = "/nowhere") {
  const TomlValue document = parse_toml(text, "job.toml", bundle::ErrorCode::Usage);
  TomlTable table(document, "job.toml", bundle::ErrorCode::Usage);
  std::vector<JobImage> images = read_job_images(table, folder);
  table.done();
  return images;
}
std::string job_of(const std::string& source, const std::string& more = {}) {
  return "[[image]]\nsource = \"" + source + "\"\n" + more;
}

// A cache, and a skopeo of our own before the real one: it prints what `inspect` finds, and copies a folder.
struct ImageDesk {
  TempDir dir;
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};
  TinyImage image;
  std::string path = std::getenv("PATH");

  ~ImageDesk() { ::setenv("PATH", path.c_str(), 1); }

  void play_skopeo(const std::string& inspected) {
    write_file(dir / "inspected", inspected);
    write_skopeo_folder(dir / "fetched", image);
    write_file(dir / "bin/skopeo", "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '" + (dir / "calls").string() +
                                       "'\nfor last; do :; done\n" + "case \" $* \" in *' inspect '*) exec cat '" +
                                       (dir / "inspected").string() + "';; esac\nexec cp -r '" +
                                       (dir / "fetched").string() + "' \"${last#dir:}\"\n");
    fs::permissions(dir / "bin/skopeo", fs::perms(0755));
    ::setenv("PATH", ((dir / "bin").string() + ":" + path).c_str(), 1);
  }
  std::vector<LockedImage> lock(const std::string& source, const std::string& more = {}) {
    return lock_images(read_images(job_of(source, more), dir.path()), "x86_64", cache, progress);
  }
};

const std::string kPlace = "docker://registry.example/org/app";

std::string index_of(const TinyImage& image) {
  return R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[)"
         R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:)" +
         hex_of(image.manifest()) + R"(","size":1,"platform":{"os":"linux","architecture":"amd64"}}]})";
}

}  // namespace

TEST_CASE("an image of a registry keeps its name and tag unless the job gives others") {
  const JobImage plain = read_images(job_of("docker://localhost:5000/org/app:1.0")).at(0);
  CHECK(plain.spec.title() == "org/app:1.0");
  CHECK(plain.spec.source == "docker://localhost:5000/org/app:1.0");
  CHECK_FALSE(plain.digest);
  const std::string hex(64, 'b');
  const JobImage pinned = read_images(job_of(kPlace + ":2@sha256:" + hex, "name = \"ours/app\"\n")).at(0);
  CHECK(pinned.spec.title() == "ours/app:2");
  CHECK(pinned.spec.source == kPlace + "@sha256:" + hex);
  CHECK(pinned.digest->hex() == hex);
}

TEST_CASE("an image in a file is named in full, its path relative to the job file") {
  const TempDir dir;
  write_file(dir / "layout/index.json", "{}");
  write_file(dir / "app.tar", "");
  const std::string named = "name = \"app\"\ntag = \"1\"\n";
  CHECK(read_images(job_of("oci:layout:one", named), dir.path())[0].spec.source ==
        "oci:" + (dir / "layout").string() + ":one");
  CHECK(read_images(job_of("docker-archive:app.tar", named), dir.path())[0].spec.source ==
        "docker-archive:" + (dir / "app.tar").string());
  CHECK_REFUSED(read_images(job_of("oci:layout"), dir.path()), Usage, "name");
  CHECK_REFUSED(read_images(job_of("oci:app.tar", named), dir.path()), Usage, "not there");
  CHECK_REFUSED(read_images(job_of("oci-archive:layout", named), dir.path()), Usage, "not there");
}

TEST_CASE("an image's source that is none, or that skopeo could take for something else, is refused with its line") {
  for (const char* source : {"app", "docker.example/app:1", "dir:/x", "containers-storage:app", "--help", ""})
    CHECK_REFUSED(read_images(job_of(source)), Usage, "not where an image comes from");
  CHECK_REFUSED(read_images(job_of("docker://app:1")), Usage, "which registry");
  CHECK_REFUSED(read_images(job_of("docker://org/app:1")), Usage, "which registry");
  CHECK_REFUSED(read_images(job_of("docker://name:secret@host.example/app:1")), Usage, "which registry");
  CHECK_REFUSED(read_images(job_of(kPlace + "@sha256:12")), Usage, "SHA-256");
  CHECK_REFUSED(read_images(job_of(kPlace + "@sha256:" + std::string(64, 'a'))), Usage, "no tag");
  CHECK_REFUSED(read_images(job_of("docker://host.example/../app:1")), Usage, "name of an image");
  CHECK_REFUSED(read_images(job_of(kPlace + ":1 --insecure-policy")), Usage, "space");
  CHECK_REFUSED(read_images(job_of(kPlace + ":1", "name = \"bundles/app\"\n")), Usage, "bundles");
  CHECK_REFUSED(read_images(job_of(kPlace + ":1") + job_of(kPlace + ":1")), Usage, "one name and tag");
}

TEST_CASE(
    "an image is locked by its manifest's digest and every blob's, and fetched by digest once its tag was asked") {
  ImageDesk desk;
  std::string top = desk.image.manifest();
  SUBCASE("of one platform") {}
  SUBCASE("out of a list of platforms") {
    top = index_of(desk.image);
  }
  desk.play_skopeo(top);
  const LockedImage locked = desk.lock(kPlace + ":1.0").at(0);
  CHECK(locked.manifest.sha256.hex() == hex_of(desk.image.manifest()));
  CHECK(locked.blobs.size() == 3);
  CHECK(locked.reference == "registry.example/org/app@sha256:" + hex_of(top));
  for (const std::string& blob : desk.image.blobs()) CHECK(desk.cache.contains(bundle::sha256(bundle::as_bytes(blob))));
  const std::string calls = read_file(desk.dir / "calls");
  CHECK(calls.find("inspect --raw " + kPlace + ":1.0\n") != calls.npos);
  CHECK(calls.find("--override-arch amd64 copy --quiet --preserve-digests --remove-signatures " + kPlace +
                   "@sha256:" + hex_of(top) + " dir:") != calls.npos);
  const std::string text = write_locked_images({locked});
  const TomlValue document = parse_toml(text, "lock", bundle::ErrorCode::Format);
  TomlTable table(document, "lock", bundle::ErrorCode::Format);
  CHECK(read_locked_images(table) == std::vector<LockedImage>{locked});
}

TEST_CASE("an image that is not what its digest says, or not in the list that was asked, is refused") {
  ImageDesk desk;
  desk.play_skopeo(desk.image.manifest());
  CHECK_REFUSED(desk.lock(kPlace + ":1@sha256:" + std::string(64, 'a')), Digest, "sha256:aaaa");
  TinyImage other;
  other.layers = {"other"};
  desk.play_skopeo(other.manifest());
  CHECK_REFUSED(desk.lock(kPlace + ":1"), Digest, hex_of(other.manifest()));
  desk.play_skopeo(index_of(other));
  CHECK_REFUSED(desk.lock(kPlace + ":1"), Digest, hex_of(other.manifest()));
  CHECK_FALSE(desk.cache.contains(bundle::sha256(bundle::as_bytes(desk.image.manifest()))));
}

TEST_CASE("a registry that sends more of a layer than its manifest says fills no disk") {
  ImageDesk desk;
  desk.play_skopeo(desk.image.manifest());
  write_file(
      desk.dir / "bin/skopeo",
      "#!/bin/sh\nfor last; do :; done\ncase \" $* \" in *' inspect '*) exec cat '" +
          (desk.dir / "inspected").string() +
          "';; esac\nmkdir \"${last#dir:}\"\nexec dd if=/dev/zero bs=65536 count=10000 of=\"${last#dir:}/layer\"\n");
  CHECK_REFUSED(desk.lock(kPlace + ":1"), Digest, "sends more of a blob");
}

TEST_CASE("without skopeo, and where it fails, lock says so and what to do") {
  ImageDesk desk;
  ::setenv("PATH", desk.dir.path().c_str(), 1);
  CHECK_REFUSED(desk.lock(kPlace + ":1"), Missing, "apt install skopeo");
  desk.play_skopeo("");
  fs::remove(desk.dir / "bin/skopeo");
  write_file(desk.dir / "bin/skopeo", "#!/bin/sh\necho 'FATA[0000] unauthorized' >&2\nexit 1\n");
  fs::permissions(desk.dir / "bin/skopeo", fs::perms(0755));
  CHECK_REFUSED(desk.lock(kPlace + ":1"), Network, "unauthorized");
}

TEST_CASE("the real skopeo gives the image of a layout byte for byte, of OCI's kind and of Docker's") {
  if (find_program("skopeo").empty() || find_program("umoci").empty()) {
    sealift::test::left_out("this machine has no skopeo or umoci");
    return;
  }
  ImageDesk desk;
  const std::string layout = (desk.dir / "layout").string(), one = layout + ":one";
  write_file(desk.dir / "etc/hello", "hello\n");
  run_checked({"umoci", "init", "--layout", layout});
  run_checked({"umoci", "new", "--image", one});
  run_checked({"umoci", "insert", "--image", one, (desk.dir / "etc").string(), "/etc"});
  std::string source = "oci:layout:one", expected = run_checked({"skopeo", "inspect", "--raw", "oci:" + one});
  std::string_view type = bundle::kOciManifestType;
  SUBCASE("of OCI's") {}
  SUBCASE("of Docker's") {
    const std::string archive = "docker-archive:" + (desk.dir / "app.tar").string();
    run_checked({"skopeo", "copy", "--quiet", "oci:" + one, archive + ":org/app:1"});
    source = "docker-archive:app.tar";
    expected = run_checked({"skopeo", "inspect", "--raw", archive});
    type = bundle::kDockerManifestType;
  }
  const LockedImage locked = desk.lock(source, "name = \"app\"\ntag = \"1\"\n").at(0);
  CHECK(locked.manifest.media_type == type);
  CHECK(read_file(desk.cache.path(locked.manifest.sha256)) == expected);
  CHECK(locked.reference.empty());
  for (const LockedBlob& blob : locked.blobs)
    CHECK(digest_of_file(desk.cache.path(blob.sha256)).hex() == blob.sha256.hex());
}

TEST_CASE("of an OCI folder the image of the tag and the platform is taken, and what is not there is named") {
  if (find_program("skopeo").empty()) {
    sealift::test::left_out("this machine has no skopeo");
    return;
  }
  ImageDesk desk;
  const fs::path folder = desk.dir / "layout";
  std::vector<std::string> entries;
  const auto add = [&](const std::string& tag, const std::string& architecture, bool says) {
    TinyImage image{.architecture = architecture, .layers = {"layer of " + tag + architecture}};
    for (const std::string& blob : image.blobs()) write_file(folder / ("blobs/sha256/" + hex_of(blob)), blob);
    write_file(folder / ("blobs/sha256/" + hex_of(image.manifest())), image.manifest());
    std::string entry = TinyImage::descriptor(image.manifest(), image.media_type());
    entry.pop_back();
    if (says) entry += R"(,"platform":{"os":"linux","architecture":")" + architecture + "\"}";
    entries.push_back(entry + R"(,"annotations":{"org.opencontainers.image.ref.name":")" + tag + "\"}}");
    write_file(folder / "oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    std::string all;
    for (const std::string& one : entries) all += (all.empty() ? "" : ",") + one;
    write_file(folder / "index.json", R"({"schemaVersion":2,"manifests":[)" + all + "]}");
    return image;
  };
  const std::string named = "name = \"app\"\ntag = \"1\"\n";
  const auto manifest_of = [&](const std::string& source) {
    return desk.lock(source, named).at(0).manifest.sha256.hex();
  };
  SUBCASE("one tag for two platforms, in whichever order") {
    add("1", "arm64", true);
    const TinyImage wanted = add("1", "amd64", true);
    CHECK(manifest_of("oci:layout:1") == hex_of(wanted.manifest()));
    CHECK(manifest_of("oci:layout") == hex_of(wanted.manifest()));
  }
  SUBCASE("two tags") {
    add("1", "amd64", false);
    const TinyImage wanted = add("2", "amd64", false);
    CHECK(manifest_of("oci:layout:2") == hex_of(wanted.manifest()));
    CHECK_REFUSED(manifest_of("oci:layout"), Usage, "layout:1, oci:");
    CHECK_REFUSED(manifest_of("oci:layout"), Usage, "layout:TAG");
    CHECK_REFUSED(manifest_of("oci:layout:3"), Missing, "no image of that tag");
  }
  SUBCASE("another platform alone") {
    add("1", "arm64", true);
    add("1", "ppc64le", true);
    CHECK_REFUSED(manifest_of("oci:layout:1"), Platform, "linux/ppc64le");
  }
  SUBCASE("a blob that was lost") {
    const TinyImage image = add("1", "amd64", false);
    fs::remove(folder / ("blobs/sha256/" + hex_of(image.layers[0])));
    CHECK_REFUSED(manifest_of("oci:layout:1"), Missing, "sha256:" + hex_of(image.layers[0]));
    CHECK_REFUSED(manifest_of("oci:layout:1"), Missing, "whole: skopeo copy");
  }
}

TEST_CASE("images become blobs of the bundle that nothing installs, each once, and a signed list of them") {
  Workshop workshop;
  const auto locked_of = [&](const TinyImage& image) {
    const Cache cache(workshop.cache());
    LockedImage locked{.name = image.name, .tag = image.tag, .reference = {}, .manifest = {}, .blobs = {}};
    const auto keep = [&](const std::string& bytes, const std::string& type) {
      const bundle::Digest digest = bundle::sha256(bundle::as_bytes(bytes));
      write_file(workshop.dir / "blob", bytes);
      cache.adopt(workshop.dir / "blob", digest);
      return LockedBlob{.sha256 = digest, .size = bytes.size(), .media_type = type};
    };
    locked.manifest = keep(image.manifest(), image.media_type());
    for (const std::string& blob : image.blobs()) locked.blobs.push_back(keep(blob, "x"));
    return locked;
  };
  TinyImage other;
  other.tag = "2.0";
  other.layers[1] = "third";
  workshop.lock.images = {locked_of({}), locked_of(other)};
  const CreateResult result = workshop.pack();
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(result.folder), pinned(one_key_root(workshop.key)), bundle::system_time());
  const bundle::Manifest& manifest = verified.manifest();
  const bundle::Entry* list = manifest.find(bundle::SafePath::parse(bundle::kImageCatalogueEntry, ""));
  REQUIRE(list != nullptr);
  std::string text;
  verified.stream(*list, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
  const bundle::ImageCatalogue images = bundle::parse_image_catalogue(text, manifest, "images");
  REQUIRE(images.size() == 2);
  std::size_t blobs = 0;
  for (const bundle::Entry& entry : manifest.entries)
    if (entry.path.text().starts_with(bundle::kImageBlobFolder)) {
      ++blobs;
      CHECK(entry.encoding == bundle::Encoding::Identity);
      CHECK(entry.installed_size == 0);
      verified.check_published(entry);
    }
  CHECK(blobs == 6);  // two manifests, one configuration, three different layers
  for (const auto& placement : manifest.environment.placements)
    CHECK_FALSE(placement.entry.text().starts_with("images/"));

  workshop.lock.version = 2;  // a site that has all of it installed has no blob of an image
  const CreateResult delta = workshop.pack("delta", 0, result.folder);
  CHECK(delta.manifest.base);
  for (const bundle::Entry& entry : delta.manifest.entries)
    if (entry.path.text().starts_with(bundle::kImageBlobFolder)) CHECK_FALSE(entry.absent);
}
