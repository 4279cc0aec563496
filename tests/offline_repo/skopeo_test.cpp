// SPDX-License-Identifier: Apache-2.0
// The real programs against skopeo, umoci, containerd and podman: an image that umoci made is pulled out of a bundle,
// listed, exported, and unpacked again; the bundle itself is pulled, and is the folder that it was.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "bundle/core/json.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/offline_repo/token_file.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

bool no_image_tools() {
  if (fs::exists("/usr/bin/skopeo") && fs::exists("/usr/bin/umoci")) return false;
  sealift::test::left_out("this machine has no skopeo or umoci");
  return true;
}

std::string must(const std::vector<std::string>& command) {
  const Ran ran = run(command);
  INFO(command[0] << " " << command[1] << ": " << ran.errors);
  CHECK(ran.status == 0);
  return ran.output;
}

std::string blob_in(const fs::path& layout, const std::string& digest) {
  return read_file(layout / "blobs/sha256" / digest.substr(7));
}

// A layout with one image, which has one file, and a bundle that carries it as localhost:5000/org/hello:1.0 was.
struct UmociSite {
  TempDir dir;
  std::string manifest;
  MadeBundle made;

  explicit UmociSite(std::vector<TinyItem> items = {}) {
    const std::string layout = (dir / "layout").string(), image = layout + ":one";
    write_file(dir / "etc/hello", "hello\n");
    must({"umoci", "init", "--layout", layout});
    must({"umoci", "new", "--image", image});
    must({"umoci", "insert", "--image", image, (dir / "etc").string(), "/etc"});
    using sealift::bundle::Json;
    const std::string digest = Json::parse(read_file(dir / "layout/index.json"))["manifests"][0]["digest"];
    manifest = blob_in(layout, digest);
    const Json json = Json::parse(manifest);
    sealift::bundle::CarriedImage listed{.name = "org/hello",
                                         .tag = "1.0",
                                         .reference = {},
                                         .media_type = std::string(sealift::bundle::kOciManifestType),
                                         .manifest = *sealift::bundle::Digest::from_hex(digest.substr(7)),
                                         .blobs = {}};
    const auto add = [&](const std::string& bytes) {
      const auto sha256 = sealift::bundle::sha256(sealift::bundle::as_bytes(bytes));
      items.push_back({.path = sealift::bundle::image_blob_entry(sha256), .bytes = bytes, .into = {}, .placed = false});
      return sha256;
    };
    add(manifest);
    listed.blobs.push_back(add(blob_in(layout, json["config"]["digest"])));
    for (const Json& layer : json["layers"]) listed.blobs.push_back(add(blob_in(layout, layer["digest"])));
    items.push_back({.path = std::string(sealift::bundle::kImageCatalogueEntry),
                     .bytes = sealift::bundle::write_image_catalogue({listed}),
                     .into = {},
                     .placed = false});
    made = make_bundle(dir / "env-1", {.name = "env", .volume_size = 16384, .items = items});
  }
  // What an image layout unpacks to, by umoci.
  std::string hello_of(const std::string& image) {
    const std::string out = (dir / "unpacked").string();
    fs::remove_all(out);
    must({"umoci", "unpack", "--rootless", "--image", image, out});
    return read_file(dir / "unpacked/rootfs/etc/hello");
  }
};

}  // namespace

TEST_CASE("skopeo lists and pulls an image and the bundle itself, with a token and by channel") {
  if (no_image_tools()) return;
  UmociSite site;
  write_tokens(site.dir / "tokens", token_line("node", "secret"));
  ServerProcess server(
      serve({site.made.folder, "--fingerprint", site.made.fingerprint(), "--tokens", (site.dir / "tokens").string()}),
      site.dir / "log");
  const std::string host = "docker://127.0.0.1:" + std::to_string(port_of(server.line())) + "/";
  const std::string creds = "--creds=x:secret", plain = "--tls-verify=false", plain_source = "--src-tls-verify=false";

  CHECK(run({"skopeo", "list-tags", plain, host + "org/hello"}).status != 0);
  CHECK(must({"skopeo", "list-tags", plain, creds, host + "org/hello"}).find("\"1.0\"") != std::string::npos);
  for (const std::string name : {"org/hello:1.0", "c/test/org/hello:1.0", "b/env-1/org/hello:1.0"}) {
    const std::string out = (site.dir / "pulled").string();
    fs::remove_all(out);
    must({"skopeo", "copy", "--quiet", plain_source, "--src-creds=x:secret", "--preserve-digests", host + name,
          "oci:" + out + ":here"});
    CHECK(site.hello_of(out + ":here") == "hello\n");
    CHECK(blob_in(out, "sha256:" + hex_of(site.manifest)) == site.manifest);
  }

  const fs::path pulled = site.dir / "bundle";  // the server reads the volumes meanwhile, and skopeo waits
  must({"skopeo", "copy", "--quiet", plain_source, "--src-creds=x:secret", "--preserve-digests", host + "bundles/env:1",
        "dir:" + pulled.string()});
  const auto manifest = sealift::bundle::Json::parse(read_file(pulled / "manifest.json"));
  CHECK(manifest["layers"].size() == 2 + site.made.manifest.payload.volumes.size());
  for (const auto& layer : manifest["layers"])
    CHECK(read_file(pulled / layer["digest"].get<std::string>().substr(7)) ==
          read_file(site.made.folder / layer["annotations"]["org.opencontainers.image.title"].get<std::string>()));
}

TEST_CASE("the front page's lines work as they are pasted, over plain HTTP from another machine") {
  if (no_image_tools()) return;
  if (::geteuid() != 0 || run({"unshare", "--net", "true"}).status != 0)
    return sealift::test::left_out("this account may not make a network of its own");
  const UmociSite site({wheel_item({})});
  const Ran ran = run({"unshare", "--net", SEALIFT_PASTE_TEST, SEALIFT_REPO_PROGRAM, SEALIFT_UV_BESIDE,
                       site.made.folder.string(), site.made.fingerprint()});
  INFO(ran.output << ran.errors);
  CHECK(ran.status == 0);
}

// Run by `offline_repo.container_engines` alone, which ctest shows as skipped and not as passed where it ends with 77.
TEST_CASE("containerd pulls an image and fetches the bundle itself, and podman pulls the image" * doctest::skip()) {
  std::string reason;
  if (!fs::exists("/usr/bin/skopeo") || !fs::exists("/usr/bin/umoci")) reason = "no skopeo or umoci";
  if (!fs::exists(SEALIFT_ENGINES "/usr/bin/containerd")) reason = "no containerd: cmake/prerequisites.sh tests";
  if (::geteuid() != 0 || run({"unshare", "--mount", "true"}).status != 0)
    reason = "this account may not mount, as containerd does with what it unpacks";
  if (!reason.empty()) {
    std::fprintf(stderr, "skipped: %s\n", reason.c_str());
    std::_Exit(77);
  }
  UmociSite site;
  ServerProcess server(serve({site.made.folder, "--fingerprint", site.made.fingerprint()}), site.dir / "log");
  const fs::path out = site.dir / "bundle";
  fs::create_directory(out);
  must({"bash", SEALIFT_CONTAINER_ENGINES, SEALIFT_ENGINES, "127.0.0.1:" + std::to_string(port_of(server.line())),
        "sha256:" + hex_of(site.manifest), out.string()});
  std::size_t files = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(out)) {
    ++files;
    CHECK(read_file(file.path()) == read_file(site.made.folder / file.path().filename()));
  }
  CHECK(files == 2 + site.made.manifest.payload.volumes.size());
}

TEST_CASE("what export makes of images is a layout that skopeo and umoci read") {
  if (no_image_tools()) return;
  UmociSite site;
  const std::string out = (site.dir / "images").string();
  must({SEALIFT_INSTALL_PROGRAM, "export", site.made.folder.string(), "--fingerprint", site.made.fingerprint(),
        "--images", out});
  CHECK(must({"skopeo", "inspect", "--raw", "oci:" + out + ":org/hello:1.0"}) == site.manifest);
  CHECK(site.hello_of(out + ":org/hello:1.0") == "hello\n");
}
