// SPDX-License-Identifier: Apache-2.0
// Model cards and job files of other projects: a tree within its bounds, a key once in a map, each node with a line.
#include "bundle/core/yaml.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift;
using namespace sealift::test;

namespace {

// How many nodes the tree has.
std::size_t count(const bundle::YamlNode& node, std::size_t depth) {
  must(depth <= bundle::kMaxYamlDepth, "a tree is bounded in depth");
  must(node.line >= 0, "a line is counted from one");
  std::size_t nodes = 1;
  for (const bundle::YamlNode& item : node.items) nodes += count(item, depth + 1);
  for (const auto& [key, value] : node.members) {
    must(node.find(key) == &value, "a key stands once");
    nodes += count(value, depth + 1);
  }
  return nodes;
}

}  // namespace

FUZZ(text) {
  accepted([&] {
    const bundle::YamlNode root = bundle::parse_yaml(text, "README.md");
    must(count(root, 0) <= bundle::kMaxYamlNodes, "a tree is bounded in nodes");
  });
}
