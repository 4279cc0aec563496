// SPDX-License-Identifier: Apache-2.0
// A root that is accepted is the one spelling of what it says, and every role of it can be met.
#include "sealift/bundle/trust/root.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    const Root root = parse_root(text, "root");
    must(write_root(root) == text, "a root has one spelling");
    for (const auto& [name, role] : root.roles)
      must(role.threshold >= 1 && role.threshold <= role.keys.size(), "a threshold can be met and is not nothing");
  });
}
