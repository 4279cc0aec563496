// SPDX-License-Identifier: Apache-2.0
// unpin: takes a pin back, so that gc may remove the generation.
#include <memory>

#include "installer/generations/pins.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct UnpinOptions {
  unsigned generation = 0;
  std::filesystem::path prefix;
  bool json = false;
};

int run(const UnpinOptions& options) {
  Disk disk;
  const bool changed = unpin_generation(Prefix(options.prefix), options.generation, disk);
  bundle::print(
      options.json, {{"generation", options.generation}, {"pinned", false}, {"changed", changed}},
      "generation " + std::to_string(options.generation) + " is " + (changed ? "" : "already ") + "not pinned\n");
  return 0;
}

}  // namespace

void add_unpin(bundle::Program& program) {
  const bundle::Verb verb = program.verb("unpin", "let gc remove a generation again");
  const auto options = std::make_shared<UnpinOptions>();
  verb.json(options->json);
  verb.option("N", options->generation, "the generation's number").required();
  add_prefix(verb, options->prefix);
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
