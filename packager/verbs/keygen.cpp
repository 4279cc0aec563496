// SPDX-License-Identifier: Apache-2.0
// `sealift-pack keygen`: makes a key, and a root that trusts it; see keys/keygen.hpp.
#include "packager/keys/keygen.hpp"

#include "packager/keys/key_file.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::packager {

namespace {

bundle::Algorithm algorithm_named(const std::string& name) {
  const bundle::AlgorithmFacts* facts = bundle::find_algorithm(name);
  if (facts == nullptr)
    throw bundle::Error(
        bundle::ErrorCode::Usage,
        {.what = "this is not an algorithm that sealift knows", .expected = bundle::known_algorithms(), .got = name});
  return facts->algorithm;
}

}  // namespace

void add_keygen(bundle::Program& program) {
  struct Options : KeygenOptions {
    std::string algorithm_name = "ed25519";
    std::filesystem::path passphrase_file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb =
      program.verb("keygen", "make a key and a root that trusts it; print the root's fingerprint");
  verb.option("DIR", options->folder, "gets release.key, release.pub, root.1.json, root.fingerprint").required();
  verb.option("--name", options->name, "only NAME.key and NAME.pub, for a root of several keys; print the key's id");
  verb.option("--algorithm", options->algorithm_name, bundle::known_algorithms()).show_default();
  verb.option("--passphrase-file", options->passphrase_file, kPassphraseFile);
  verb.json(options->json);
  verb.action([options] {
    options->algorithm = algorithm_named(options->algorithm_name);
    options->passphrase = read_passphrase(options->passphrase_file);
    const std::string made = bundle::fingerprint_text(keygen(*options));
    bundle::print(options->json, {{options->name.empty() ? "fingerprint" : "keyid", made}}, made + "\n");
    return 0;
  });
}

}  // namespace sealift::packager
