// SPDX-License-Identifier: Apache-2.0
// pin: keeps a generation from gc. unpin: lets gc remove it again.
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

int run(const PinOptions& options, bool pinned) {
  Disk disk;
  const Prefix prefix(options.prefix);
  const bool changed =
      pinned ? pin_generation(prefix, options.generation, disk) : unpin_generation(prefix, options.generation, disk);
  bundle::print(options.json, {{"generation", options.generation}, {"pinned", pinned}, {"changed", changed}},
                "generation " + std::to_string(options.generation) + " is " + (changed ? "" : "already ") +
                    (pinned ? "pinned\n" : "not pinned\n"));
  return 0;
}

void add(bundle::Program& program, const char* name, const char* about, bool pinned) {
  const bundle::Verb verb = program.verb(name, about);
  const auto options = std::make_shared<PinOptions>();
  verb.json(options->json);
  verb.option("N", options->generation, "the generation's number").required();
  add_prefix(verb, options->prefix);
  verb.action([options, pinned] { return run(*options, pinned); });
}

}  // namespace

void add_pin(bundle::Program& program) {
  add(program, "pin", "keep a generation, whatever gc is told", true);
}

void add_unpin(bundle::Program& program) {
  add(program, "unpin", "let gc remove a generation again", false);
}

}  // namespace sealift::installer
