// SPDX-License-Identifier: Apache-2.0
// inventory: what a prefix's store holds, to be carried out. Always JSON, since only the packager reads it.
#include <iostream>
#include <memory>

#include "installer/upkeep/inventory.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct InventoryOptions {
  std::filesystem::path prefix;
  bool json = false;  // accepted like everywhere; the output is the same
};

int run(const InventoryOptions& options) {
  const TakenInventory inventory = take_inventory(Prefix(options.prefix));
  bundle::print_warnings(inventory.warnings);
  std::cout << bundle::write_inventory(inventory.found) << std::flush;
  return 0;
}

}  // namespace

void add_inventory(bundle::Program& program) {
  const bundle::Verb verb =
      program.verb("inventory", "print what a prefix's store holds, for a bundle that leaves it out");
  const auto options = std::make_shared<InventoryOptions>();
  verb.json(options->json);
  add_prefix(verb, options->prefix);
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
