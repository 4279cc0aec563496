// SPDX-License-Identifier: Apache-2.0
// `sealift-pack recut`: cuts a bundle into other volumes and signs the new cut; see pack/recut.hpp.
#include "packager/pack/recut.hpp"

#include <fmt/format.h>

#include "packager/keys/key_file.hpp"
#include "packager/pack/volume_size.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::packager {

void add_recut(bundle::Program& program) {
  struct Options : RecutOptions {
    std::string volume = "0";
    std::string root;
    std::filesystem::path passphrase_file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb = program.verb("recut", "cut a bundle into other volumes and sign the new cut");
  verb.option("BUNDLE", options->bundle, "the bundle's folder or seal").required();
  verb.option("--volume-size", options->volume, "1G, 4700M, dvd, dvd-dl, bd, cd, fat32 (default: one)");
  verb.option("--fingerprint", options->root,
              "the fingerprint of a root: the bundle is verified from it before it is signed again")
      .required();
  verb.option("--key", options->keys, "a private key that signs; may be repeated").required().repeated();
  verb.option("--passphrase-file", options->passphrase_file, kPassphraseFile);
  verb.option("-o,--output", options->out, "the folder that gets NAME-VERSION/").required();
  verb.json(options->json);
  verb.action([options] {
    bundle::Progress progress;
    options->volume_size = parse_volume_size(options->volume);
    options->fingerprint = bundle::parse_fingerprint(options->root);
    options->passphrase = read_passphrase(options->passphrase_file);
    const RecutResult result = recut(*options, progress);
    const std::size_t volumes = result.manifest.payload.volumes.size();
    progress.note(fmt::format("{} volume(s); signatures: {}", volumes, text_of(result.roles)));
    bundle::print(options->json, {{"bundle", result.folder.string()}, {"volumes", volumes}},
                  result.folder.string() + "\n");
    return 0;
  });
}

}  // namespace sealift::packager
