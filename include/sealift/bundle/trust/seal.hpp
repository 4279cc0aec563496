// SPDX-License-Identifier: Apache-2.0
// The small signed file of a bundle: the chain of roots, oldest first, then the manifest; each a signed envelope on a
// line of its own, so `head`, `tail` and `cat` take it apart and put it together.
#pragma once

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

inline std::string write_seal(const Seal& seal) {
  std::string text;
  for (const Envelope& root : seal.roots) text += write_envelope(root);
  return text + write_envelope(seal.manifest);
}

namespace detail {

// The envelopes of a file, one a line. All but the last are roots, and so small; `last` bounds that one.
inline std::vector<Envelope> parse_envelopes(std::string_view text, const std::string& where, std::size_t most,
                                             std::size_t last) {
  std::vector<Envelope> envelopes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (envelopes.size() == most)
      refuse_json(where, "it holds more than " + std::to_string(most) + " signed documents");
    if (const std::size_t limit = end == text.size() ? last : kMaxRootSize; end > limit)
      refuse_json(where, "a root is larger than " + std::to_string(limit >> 10) + " KiB",
                  std::to_string(end) + " bytes");
    envelopes.push_back(parse_envelope(text.substr(0, end), where));
    text.remove_prefix(end);
  }
  return envelopes;
}

}  // namespace detail

// Throws Format unless `text` is byte for byte what write_seal would write.
inline Seal parse_seal(std::string_view text, const std::string& where) {
  Seal seal;
  seal.roots = detail::parse_envelopes(text, where, kMaxRootChain + 1, kMaxSealSize);
  if (seal.roots.size() < 2)
    detail::refuse_json(where, "a seal holds at least one root and the manifest",
                        std::to_string(seal.roots.size()) + " signed document(s)");
  seal.manifest = std::move(seal.roots.back());
  seal.roots.pop_back();
  return seal;
}

// root.N.json, or several of them in one file.
inline std::vector<Envelope> parse_roots(std::string_view text, const std::string& where) {
  std::vector<Envelope> roots = detail::parse_envelopes(text, where, kMaxRootChain, kMaxRootSize);
  if (roots.empty()) detail::refuse_json(where, "there is no root in it");
  return roots;
}

}  // namespace sealift::bundle
