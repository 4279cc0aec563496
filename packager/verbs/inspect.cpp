// SPDX-License-Identifier: Apache-2.0
// `sealift-pack inspect`: shows what a bundle says it is, and who signed it; see compare/inspect.hpp.
#include "packager/compare/inspect.hpp"

#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::packager {

void add_inspect(bundle::Program& program) {
  struct Options {
    std::filesystem::path bundle;
    std::string fingerprint;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb = program.verb("inspect", "show what a bundle says it is, and who signed it");
  verb.option("BUNDLE", options->bundle, "the bundle's folder or seal").required();
  verb.option("--fingerprint", options->fingerprint,
              "the fingerprint of a root: refuse unless the bundle's roots begin there and its thresholds are met");
  verb.json(options->json);
  verb.action([options] {
    std::optional<bundle::Digest> root;
    if (!options->fingerprint.empty()) root = bundle::parse_fingerprint(options->fingerprint);
    const InspectReport report = inspect(options->bundle, root);
    bundle::print(options->json, inspect_json(report), inspect_text(report));
    return 0;
  });
}

}  // namespace sealift::packager
