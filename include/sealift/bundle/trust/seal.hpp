// SPDX-License-Identifier: Apache-2.0
// The small signed file of a bundle: the chain of roots, oldest first, then the manifest; each a signed envelope on a
// line of its own, so `head`, `tail` and `cat` take it apart and put it together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/trust/root_chain.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kBundlePayloadType = "application/vnd.sealift.bundle.v1+json";
inline constexpr std::uint64_t kMaxSealSize = std::uint64_t{64} << 20;

struct Seal {
  std::vector<Envelope> roots;
  Envelope manifest{.payload_type = std::string(kBundlePayloadType), .payload = {}, .signatures = {}};
};

// The roots and the manifest, a line each.
std::string write_seal(const Seal& seal);
// Throws Format unless `text` is byte for byte what write_seal would write.
Seal parse_seal(std::string_view text, const std::string& where);

// root.N.json, or several of them in one file; throws Format when there is none.
std::vector<Envelope> parse_roots(std::string_view text, const std::string& where);

}  // namespace sealift::bundle
