// SPDX-License-Identifier: Apache-2.0
// Sizes and fingerprints as people read them. One spelling each, so that what the packager printed outside can be
// compared by eye with what the installer prints inside.
#pragma once

#include <cstdint>
#include <string>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {

// "999 B", "1.2 GB"; decimal, as discs are sold.
std::string human_size(std::uint64_t bytes);

// "sha256:" and 64 lower-case hexadecimal digits; parse_fingerprint (trust/trust_state.hpp) reads it back.
std::string fingerprint_text(const Digest& digest);

}  // namespace sealift::bundle
