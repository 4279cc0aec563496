// SPDX-License-Identifier: Apache-2.0
// Who may pull what from the real program's registry: a token sees images, blobs and bundles of what it is for, at
// every address, and a digest opens nothing else.
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/offline_repo/token_file.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift::test;
using sealift::bundle::PrivateKey;

TEST_CASE(
    "a token for one channel pulls no image, blob or bundle of another one, whatever digest and address it asks") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const TinyImage prod_image{.layers = {std::string(9000, 'p'), "both"}}, dev_image{.layers = {"dev", "both"}};
  const auto make = [&](const std::string& name, const std::string& channel, const TinyImage& image) {
    return make_bundle(dir / name, {.name = name, .channel = channel, .items = image_items({image})}, key);
  };
  const MadeBundle prod = make("prod_env", "prod", prod_image), dev = make("dev_env", "dev", dev_image);
  write_tokens(dir / "tokens", token_line("carol", "c-secret", "channel:dev") + token_line("dave", "d-secret"));
  ServerProcess child(serve({prod.folder, dev.folder, "--fingerprint", prod.fingerprint(), "--tokens", dir / "tokens"}),
                      dir / "log");
  const std::uint16_t port = port_of(child.line());
  const auto status = [&](const std::string& target, const std::string& token) {
    return fetch(port, target, bearer(token)).status;
  };
  const std::string layer = "org/app/blobs/sha256:" + hex_of(prod_image.layers[0]),
                    manifest = "org/app/manifests/sha256:" + hex_of(prod_image.manifest());
  for (const std::string root :
       {"/v2/", "/v2/c/prod/", "/v2/b/prod_env-1/", "/c/prod/v2/", "/b/prod_env-1/v2/", "/v2/c/dev/", "/c/dev/v2/",
        "/v2/b/dev_env-1/", "http://127.0.0.1/v2/", "/b/dev_env-1/v2/"}) {
    CAPTURE(root);
    for (const std::string& what :
         {layer, manifest, std::string("bundles/prod_env/tags/list"), std::string("bundles/prod_env/manifests/1")}) {
      CAPTURE(what);
      CHECK(status(root + what, "c-secret") == 404);
      CHECK(fetch(port, root + what).status == 401);
    }
    CHECK(status(root + layer, "d-secret") == 200);  // by its digest, whichever view is asked
  }
  for (const std::string root : {"/v2/", "/v2/c/dev/", "/b/dev_env-1/v2/"}) {
    CAPTURE(root);
    CHECK(status(root + "org/app/blobs/sha256:" + hex_of("both"), "c-secret") == 200);  // dev carries it too
    CHECK(status(root + "org/app/manifests/1.0", "c-secret") == 200);
    CHECK(fetch(port, root + "_catalog", bearer("c-secret")).body ==
          R"({"repositories":["bundles/dev_env","org/app"]})");
  }
}
