// SPDX-License-Identifier: Apache-2.0
// Takes a seal apart, line by line; see seal.hpp.
#include "sealift/bundle/trust/seal.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "bundle/core/json_object.hpp"

namespace sealift::bundle {

std::string write_seal(const Seal& seal) {
  std::string text;
  for (const Envelope& root : seal.roots) text += write_envelope(root);
  return text + write_envelope(seal.manifest);
}

namespace {

// The envelopes of a file, one a line. All but the last are roots, and so small; `last` bounds that one.
std::vector<Envelope> parse_envelopes(std::string_view text, const std::string& where, std::size_t most,
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

}  // namespace

Seal parse_seal(std::string_view text, const std::string& where) {
  Seal seal;
  seal.roots = parse_envelopes(text, where, kMaxRootChain + 1, kMaxSealSize);
  if (seal.roots.size() < 2)
    refuse_json(where, "a seal holds at least one root and the manifest",
                std::to_string(seal.roots.size()) + " signed document(s)");
  seal.manifest = std::move(seal.roots.back());
  seal.roots.pop_back();
  return seal;
}

std::vector<Envelope> parse_roots(std::string_view text, const std::string& where) {
  std::vector<Envelope> roots = parse_envelopes(text, where, kMaxRootChain, kMaxRootSize);
  if (roots.empty()) refuse_json(where, "there is no root in it");
  return roots;
}

}  // namespace sealift::bundle
