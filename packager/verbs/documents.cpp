// SPDX-License-Identifier: Apache-2.0
// `sealift-pack documents`: writes what reviewers file beside a bundle; see documents/documents.hpp.
#include "packager/documents/documents.hpp"

#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::packager {

void add_documents(bundle::Program& program) {
  struct Options : DocumentsOptions {
    std::string root;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb = program.verb("documents", "write SBOM, provenance, licences and review pages for a bundle");
  verb.option("BUNDLE", options->bundle, "the bundle's folder or seal").required();
  verb.option("--fingerprint", options->root, "the fingerprint of a root: the bundle is first verified from it")
      .required();
  verb.option("--lock", options->lock, "the bundle's lock: adds addresses and builds");
  verb.option("-o,--output", options->out, "the new folder that gets the documents").required();
  verb.json(options->json);
  verb.action([options] {
    bundle::Progress progress;
    options->fingerprint = bundle::parse_fingerprint(options->root);
    bundle::Json files = bundle::Json::array();
    std::string lines;
    for (const std::filesystem::path& file : write_documents(*options, progress)) {
      files.push_back(file.string());
      lines += file.string() + "\n";
    }
    bundle::print(options->json, {{"documents", std::move(files)}}, lines);
    return 0;
  });
}

}  // namespace sealift::packager
