// SPDX-License-Identifier: Apache-2.0
// Sizes and fingerprints as people read them.
#include "sealift/bundle/core/human_text.hpp"

#include <doctest/doctest.h>

#include "sealift/bundle/trust/trust_state.hpp"

using namespace sealift::bundle;

TEST_CASE("sizes are decimal, with a unit that keeps them short") {
  CHECK(human_size(0) == "0 B");
  CHECK(human_size(999) == "999 B");
  CHECK(human_size(1000) == "1.0 kB");
  CHECK(human_size(999'499) == "999.5 kB");
  CHECK(human_size(999'500) == "1.0 MB");
  CHECK(human_size(4'700'000'000) == "4.7 GB");
}

TEST_CASE("a fingerprint is read back as it was written") {
  const Digest digest = sha256(as_bytes("abc"));
  CHECK(fingerprint_text(digest) == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(parse_fingerprint(fingerprint_text(digest)) == digest);
}
