// SPDX-License-Identifier: Apache-2.0
// `sealift-pack rehearse`: installs a bundle without a network and throws the result away; see pack/rehearse.hpp.
#include "packager/pack/rehearse.hpp"

#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::packager {

void add_rehearse(bundle::Program& program) {
  struct Options : RehearseOptions {
    std::string root;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb =
      program.verb("rehearse", "install a bundle without a network, here, and throw the result away");
  verb.option("BUNDLE", options->bundle, "the bundle's folder or seal").required();
  verb.option("--fingerprint", options->root, "the fingerprint of a root: the bundle is first verified from it")
      .required();
  verb.option("--system", options->system, "the root folder of a system of the target's kind (default: this one)");
  verb.option("--onto", options->onto, "a bundle that a delta builds on; may be repeated, oldest first").repeated();
  verb.option("--work-area", options->work_area, "has room for all that is installed (default: beside the bundle)");
  verb.option("--waive", options->waivers, "PATH=REASON, given to apply: a native file that may fail to load")
      .repeated();
  verb.json(options->json);
  verb.action([options] {
    bundle::Progress progress;
    options->fingerprint = bundle::parse_fingerprint(options->root);
    const Rehearsal done = rehearse(*options, progress);
    bundle::print(options->json, {{"installed", done.installed}, {"system", done.system}},
                  "rehearsed: " + done.installed + " in " + done.system + "\n");
    return 0;
  });
}

}  // namespace sealift::packager
