// SPDX-License-Identifier: Apache-2.0
// A copy of the trust state that is torn is no copy, or is refused; a state that is whole says the same when it is
// written again.
#include "sealift/bundle/trust/trust_folder.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    if (const auto stored = parse_trust_copy(text, 0, "state.a"))
      must(stored->copy == 0, "a copy is the one that was read");
  });
  // Behind the checksum, which nothing random passes.
  accepted([&] {
    const TrustState state = parse_trust_state(text, "state.a");
    must(write_trust_state(parse_trust_state(write_trust_state(state), "state.a")) == write_trust_state(state),
         "a state survives being written");
  });
}
