// SPDX-License-Identifier: Apache-2.0
// YAML from a stranger as a plain tree, and the only door to yaml-cpp: the front matter of model cards, the job files
// of other projects. Bounded in size, depth and number; a key stands once; nothing is expanded.
// Values stay texts: what "no", "1e5" or "012" means, the versions of YAML see differently, and their readers know.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sealift::bundle {

inline constexpr std::size_t kMaxYaml = std::size_t{1} << 20;  // bytes
inline constexpr std::size_t kMaxYamlDepth = 32;
inline constexpr std::size_t kMaxYamlNodes = 100'000;

struct YamlNode {
  enum class Kind {
    Null,   // nothing, "null" or "~", without quotes
    Text,   // with `quoted` in quotes or as a block: never anything else than a text
    List,   // `items`
    Map,    // `members`, in the order of the text
    Alias,  // of another place, which is not followed: ten of ten of ten of them are a bomb
  };

  Kind kind = Kind::Null;
  int line = 0;  // from 1
  std::string text = {};
  bool quoted = false;
  std::vector<YamlNode> items = {};
  std::vector<std::pair<std::string, YamlNode>> members = {};

  // For a map; null where it has no such key.
  const YamlNode* find(std::string_view key) const;
};

// The one document of `text`. Throws Format naming `where` and the line for malformed YAML, two documents, keys that
// are not texts or stand twice, for tags such as !!python/object, and beyond the bounds.
YamlNode parse_yaml(std::string_view text, const std::string& where);

}  // namespace sealift::bundle
