// SPDX-License-Identifier: Apache-2.0
// switch: makes another generation current, the way back after a bad update.
#include <memory>

#include "installer/upkeep/switch.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct SwitchOptions {
  unsigned generation = 0;
  std::filesystem::path prefix;
  bool json = false;
};

int run(const SwitchOptions& options) {
  Disk disk;
  const GenerationRecord record = switch_to(Prefix(options.prefix), options.generation, disk);
  bundle::print(options.json, {{"generation", record.number}, {"name", record.name}, {"version", record.version}},
                "generation " + std::to_string(record.number) + " is current: " + record.name + " version " +
                    std::to_string(record.version) + "\n");
  return 0;
}

}  // namespace

void add_switch(bundle::Program& program) {
  const bundle::Verb verb = program.verb("switch", "make another generation current");
  const auto options = std::make_shared<SwitchOptions>();
  verb.json(options->json);
  verb.option("N", options->generation, "the generation's number").required();
  add_prefix(verb, options->prefix);
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
