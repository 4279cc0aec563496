// SPDX-License-Identifier: Apache-2.0
// An inventory that is accepted is written and read back as the same value, in one spelling.
#include "sealift/bundle/manifest/inventory.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    const Inventory inventory = parse_inventory(text, "inventory");
    const std::string written = write_inventory(inventory);
    must(parse_inventory(written, "written") == inventory, "what was written reads back");
    must(write_inventory(parse_inventory(written, "written")) == written, "there is one spelling");
    for (const std::string& item : inventory.items) must(is_store_item_name(item), "an item has a store's name");
  });
}
