// SPDX-License-Identifier: Apache-2.0
// `sealift-pack diff`: shows how two bundles or locks differ; see compare/diff.hpp.
#include "packager/compare/diff.hpp"

#include "packager/verbs/verbs.hpp"

namespace sealift::packager {

void add_diff(bundle::Program& program) {
  struct Options {
    std::filesystem::path before, after;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const bundle::Verb verb = program.verb("diff", "show how two bundles or locks differ");
  verb.option("BEFORE", options->before, "a bundle's folder or seal, or a lock").required();
  verb.option("AFTER", options->after, "the same").required();
  verb.json(options->json);
  verb.action([options] {
    const Diff found = diff(read_diff_side(options->before), read_diff_side(options->after));
    bundle::print(options->json, diff_json(found), diff_text(found));
    return 0;
  });
}

}  // namespace sealift::packager
