// SPDX-License-Identifier: Apache-2.0
// Looks an algorithm up by its name; see algorithm.hpp.
#include "sealift/bundle/trust/algorithm.hpp"

#include <iterator>

namespace sealift::bundle {

std::string name_of(Algorithm algorithm) {
  return std::string(facts_of(algorithm).name);
}

const AlgorithmFacts* find_algorithm(std::string_view name) {
  for (const AlgorithmFacts& facts : kAlgorithms)
    if (facts.name == name) return &facts;
  return nullptr;
}

std::string known_algorithms() {
  std::string text;
  for (const AlgorithmFacts& facts : kAlgorithms)
    text += (text.empty() ? "" : &facts == std::end(kAlgorithms) - 1 ? " or " : ", ") + std::string(facts.name);
  return text;
}

}  // namespace sealift::bundle
