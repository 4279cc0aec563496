// SPDX-License-Identifier: Apache-2.0
// pin: keeps a generation from gc until unpin.
#include <memory>

#include "installer/generations/pins.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct PinOptions {
  unsigned generation = 0;
  std::filesystem::path prefix;
  bool json = false;
};

int run(const PinOptions& options) {
  Disk disk;
  const bool changed = pin_generation(Prefix(options.prefix), options.generation, disk);
  bundle::print(options.json, {{"generation", options.generation}, {"pinned", true}, {"changed", changed}},
                "generation " + std::to_string(options.generation) + " is " + (changed ? "" : "already ") + "pinned\n");
  return 0;
}

}  // namespace

void add_pin(bundle::Program& program) {
  const bundle::Verb verb = program.verb("pin", "keep a generation, whatever gc is told");
  const auto options = std::make_shared<PinOptions>();
  verb.json(options->json);
  verb.option("N", options->generation, "the generation's number").required();
  add_prefix(verb, options->prefix);
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
