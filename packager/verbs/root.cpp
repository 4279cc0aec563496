// SPDX-License-Identifier: Apache-2.0
// `sealift-pack root create`: makes an unsigned root from a TOML file; see keys/root_job.hpp. `root sign` is beside
// `sign`.
#include <iostream>

#include "bundle/core/foreign_text.hpp"
#include "packager/keys/root_job.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::packager {

void add_root(bundle::Program& program) {
  struct Options : RootJobOptions {
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb root = program.verb("root", "the file that says who may sign what");
  const bundle::Verb verb = root.verb("create", "make an unsigned root from a TOML file");
  verb.option("ROOT", options->job, "keys, roles, thresholds, revocations (TOML)").required();
  verb.option("--previous", options->previous, "the root before this one; its revocations are kept");
  verb.option("-o,--output", options->out, "the root file (default: root.N.json beside ROOT)");
  verb.json(options->json);
  verb.action([options] {
    const RootJobResult made = create_root(*options);
    for (const auto& [name, role] : made.root.roles)
      std::cerr << bundle::terminal_text(name) << ": " << role.threshold << " of " << role.keys.size() << " keys"
                << (role.keys.size() > 1 && role.threshold == role.keys.size() ? "; losing one key stops this role"
                                                                               : "")
                << "\n";
    const std::string fingerprint = bundle::fingerprint_text(made.fingerprint);
    bundle::print(options->json,
                  {{"root", made.file.string()}, {"version", made.root.version}, {"fingerprint", fingerprint}},
                  fingerprint + "\n");
    return 0;
  });
  add_root_sign(root);
}

}  // namespace sealift::packager
