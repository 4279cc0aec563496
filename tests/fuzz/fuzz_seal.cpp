// SPDX-License-Identifier: Apache-2.0
// A seal that is accepted is the one spelling of what it says. The bytes that are signed are told apart by type.
#include "sealift/bundle/trust/seal.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    const Seal seal = parse_seal(text, "seal");
    must(write_seal(seal) == text, "a seal has one spelling");
  });
}
