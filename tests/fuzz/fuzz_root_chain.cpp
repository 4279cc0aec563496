// SPDX-License-Identifier: Apache-2.0
// A chain of roots from a pinned one: what is accepted was signed, begins at the pin, and goes up by one.
#include "sealift/bundle/trust/root_chain.hpp"
#include "sealift/bundle/trust/seal.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    const std::vector<Envelope> chain = parse_roots(text, "roots");
    if (chain.empty()) return;
    TrustState state;
    state.pinned = chain.front().digest();
    const TrustState after = follow_roots(state, chain, "roots");
    must(after.root == chain.back().payload, "the newest root is the last");
    const Root first = parse_root(chain.front().payload, "first"), last = parse_root(after.root, "last");
    must(last.version == first.version + chain.size() - 1, "versions go up by one");
    for (const auto& [key, revocation] : first.revoked_keys)
      must(last.revoked_keys.contains(key), "a revocation is for ever");
  });
}
