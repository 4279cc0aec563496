// SPDX-License-Identifier: Apache-2.0
// `sealift-pack sign`: adds a signature to a root or a bundle; see keys/sign.hpp.
#include "packager/keys/sign.hpp"

#include "packager/keys/key_file.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::packager {

void add_sign(bundle::Program& program) {
  struct Options : SignOptions {
    std::filesystem::path passphrase_file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb = program.verb("sign", "add a signature to a root or a bundle; no volume is touched");
  verb.option("FILE", options->file, "a root file, a bundle's folder or its seal").required();
  verb.option("--key", options->keys, "a private key that signs; may be repeated").repeated();
  verb.option("--root", options->roots, "roots that replace those in a bundle's seal, oldest first").repeated();
  verb.option("--export", options->export_to, "write the exact bytes that a key elsewhere (HSM, UKey) must sign");
  verb.option("--import", options->import_from, "take in that key's signature, once it was checked");
  verb.option("--public-key", options->public_key, "whose signature is imported (PEM)");
  verb.option("--passphrase-file", options->passphrase_file, kPassphraseFile);
  verb.json(options->json);
  verb.action([options] {
    options->passphrase = read_passphrase(options->passphrase_file);
    const SignResult result = sign(*options);
    bundle::print(options->json,
                  {{"file", result.file.string()},
                   {"sha256", bundle::fingerprint_text(result.digest)},
                   {"signers", signers_json(result.signers)},
                   {"roles", roles_json(result.roles)}},
                  text_of(result.roles) + "\n");
    return 0;
  });
}

}  // namespace sealift::packager
