// SPDX-License-Identifier: Apache-2.0
// `sealift-pack sign` and `root sign`: add a signature to a bundle, or to a root; see keys/sign.hpp and sign_root.hpp.
// Which of both it is, the caller says, so that no file decides it.
#include "packager/keys/sign.hpp"

#include "packager/keys/key_file.hpp"
#include "packager/keys/sign_root.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::packager {

namespace {

struct SignArguments : SignOptions {
  std::string root;
  std::filesystem::path passphrase_file;
  bool json = false;
};

using Sign = SignResult (*)(const SignOptions&, bundle::Progress&);

// What both verbs take, and what both do.
void complete(const bundle::Verb& verb, const std::shared_ptr<SignArguments>& options, Sign sign_it) {
  verb.option("--key", options->keys, "a private key that signs; may be repeated").repeated();
  verb.option("--fingerprint", options->root, "the fingerprint of your pinned root: all trust begins there");
  verb.option("--trust", options->trust, "a trust folder of sealift-install (PREFIX/trust), in place of a fingerprint");
  verb.option("--export", options->export_to, "write the exact bytes that a key elsewhere (HSM, UKey) must sign");
  verb.option("--import", options->import_from, "check that key's signature and add it");
  verb.option("--public-key", options->public_key, "the key (PEM) of an imported signature, now or later");
  verb.option("--passphrase-file", options->passphrase_file, kPassphraseFile);
  verb.json(options->json);
  verb.action([options, sign_it] {
    bundle::Progress progress;
    if (!options->root.empty()) options->fingerprint = bundle::parse_fingerprint(options->root);
    if (!options->keys.empty()) options->passphrase = read_passphrase(options->passphrase_file);
    const SignResult result = sign_it(*options, progress);
    bundle::print(options->json,
                  {{"file", result.file.string()},
                   {"sha256", bundle::fingerprint_text(result.digest)},
                   {"signers", signers_json(result.signers)},
                   {"roles", roles_json(result.roles)}},
                  text_of(result.roles) + "\n");
    return 0;
  });
}

}  // namespace

void add_sign(bundle::Program& program) {
  const auto options = std::make_shared<SignArguments>();
  const bundle::Verb verb = program.verb("sign", "add a signature to a bundle; no volume is touched");
  verb.option("BUNDLE", options->file, "the bundle's folder or its seal").required();
  verb.option("--root", options->roots, "roots that replace those in the seal, oldest first").repeated();
  verb.flag("--sandboxed-builds-only", options->sandboxed_builds_only,
            "do not sign a bundle with a wheel that was built outside of a sandbox");
  complete(verb, options, sign);
}

void add_root_sign(const bundle::Verb& root) {
  const auto options = std::make_shared<SignArguments>();
  const bundle::Verb verb = root.verb("sign", "add a signature to a root");
  verb.option("ROOT", options->file, "the root's file").required();
  verb.option("--previous", options->roots, "the roots before it, from the pinned one on, oldest first").repeated();
  complete(verb, options, sign_root);
}

}  // namespace sealift::packager
