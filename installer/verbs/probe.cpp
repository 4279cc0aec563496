// SPDX-License-Identifier: Apache-2.0
// probe: what this machine is. With --prefix also the free space there, as packers ask for both.
#include <memory>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/print/machine_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct ProbeOptions {
  std::filesystem::path prefix;
  bool json = false;
};

int run(const ProbeOptions& options) {
  Machine machine = probe();
  if (!options.prefix.empty()) machine.target.free_gib = Disk().free_space(Prefix(options.prefix).folder()).bytes >> 30;
  bundle::print(options.json, json_of(machine), text_of(machine));
  return 0;
}

}  // namespace

void add_probe(bundle::Program& program) {
  const bundle::Verb verb = program.verb("probe", "print what this machine is, for a job file's target");
  const auto options = std::make_shared<ProbeOptions>();
  verb.json(options->json);
  add_prefix(verb, options->prefix, false);
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
