// SPDX-License-Identifier: Apache-2.0
// Good inputs of parsers of small texts, for make_corpus.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/tiny_image.hpp"

namespace sealift::test {

using Good = std::vector<std::pair<std::string, std::string>>;  // name -> bytes

// The texts that the site_files target tells apart.
inline Good site_files() {
  return {{"tokens", "talice " + std::string(64, 'a') + " bundle:env channel:prod # who\n"},
          {"switches", "sprod/env 3\n"},
          {"listen", "l[::1]:8080"},
          {"variables", "vA=1\nB=${PREFIX}/x\n"}};
}

inline Good git_logins() {
  return {{"login", "a @ git+https://me:x%40y@h:8443/a.git@v1#subdirectory=b ; extra == 'c'"},
          {"several", "git+http://a:1@h/a git+http://b:2@h/b\nc @ git+https://token@o/c"},
          {"line", "git+https://me:x%0Ahost=evil@h/a"},
          {"message", "fatal: https://me:x@h/a https://u@[::1]:1/b"}};
}

inline Good image_layouts() {
  const TinyImage image;
  const std::string list = R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{)"
                           R"("mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:)" +
                           hex_of(image.manifest()) +
                           R"(","size":400,"platform":{"architecture":"amd64","os":"linux"}}]})";
  return {{"manifest", image.manifest()}, {"docker", TinyImage{.docker = true}.manifest()}, {"list", list}};
}

inline std::string golden_text() {
  return R"({"format":"sealift.golden","version":1,"name":"tiny","verb":"sft","settings":{"a":"b"},"tolerances":{)"
         R"("loss":"0.5"},"rows":4,"ranks":2,"method":"ddp","threads":1,"steps":1,"losses":["2.5"],"norms":["1"],)"
         R"("weights":")" +
         std::string(64, 'a') + R"(","device":"cpu","arch":"x86_64","torch":"2","inputs":{"models/tiny/a":")" +
         std::string(64, 'b') + R"("}})";
}

}  // namespace sealift::test
