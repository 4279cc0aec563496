// SPDX-License-Identifier: Apache-2.0
// Two keys of the YAML at the top; see model_card.hpp. What is more than a name or a list of names is taken for none.
#include "packager/documents/model_card.hpp"

#include <algorithm>

#include "bundle/core/text_parts.hpp"
#include "bundle/core/unicode.hpp"
#include "bundle/core/yaml.hpp"
#include "packager/documents/wheel_facts.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

using bundle::trimmed;

namespace {

constexpr std::size_t kMaxLicences = 20;

// Hubs write SPDX's identifiers in lower case. What may be one of two of them (gpl-3.0: only, or later) is no match.
constexpr std::string_view kSpdx[] = {"AFL-3.0",
                                      "Apache-2.0",
                                      "Artistic-2.0",
                                      "BSD-2-Clause",
                                      "BSD-3-Clause",
                                      "BSD-3-Clause-Clear",
                                      "BSL-1.0",
                                      "CC0-1.0",
                                      "CC-BY-2.0",
                                      "CC-BY-2.5",
                                      "CC-BY-3.0",
                                      "CC-BY-4.0",
                                      "CC-BY-SA-3.0",
                                      "CC-BY-SA-4.0",
                                      "CC-BY-NC-2.0",
                                      "CC-BY-NC-3.0",
                                      "CC-BY-NC-4.0",
                                      "CC-BY-ND-4.0",
                                      "CC-BY-NC-ND-3.0",
                                      "CC-BY-NC-ND-4.0",
                                      "CC-BY-NC-SA-2.0",
                                      "CC-BY-NC-SA-3.0",
                                      "CC-BY-NC-SA-4.0",
                                      "CDLA-Permissive-1.0",
                                      "CDLA-Permissive-2.0",
                                      "CDLA-Sharing-1.0",
                                      "ECL-2.0",
                                      "EPL-1.0",
                                      "EPL-2.0",
                                      "EUPL-1.1",
                                      "EUPL-1.2",
                                      "ISC",
                                      "LPPL-1.3c",
                                      "MIT",
                                      "MPL-2.0",
                                      "MS-PL",
                                      "NCSA",
                                      "OFL-1.1",
                                      "OSL-3.0",
                                      "PostgreSQL",
                                      "Unlicense",
                                      "WTFPL",
                                      "Zlib"};

// The lines between "---" and "---".
std::string_view block_of(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t first = text.substr(0, kMaxCardBlock).find('\n');
  if (first == text.npos || trimmed(text.substr(0, first)) != "---") return {};
  text = text.substr(first + 1, kMaxCardBlock);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (trimmed(text.substr(begin, end - begin)) == "---") return text.substr(0, begin);
    begin = end + 1;
  }
  return {};
}

// The values of a key, one or a list of them; none that is more than a text.
std::vector<std::string> values_of(const bundle::YamlNode& card, std::string_view key) {
  std::vector<std::string> values;
  const auto add = [&](const bundle::YamlNode& node) {
    if (node.kind != bundle::YamlNode::Kind::Text) return;
    const std::string value = shown(trimmed(node.text));
    const bool is_new = std::find(values.begin(), values.end(), value) == values.end();
    if (!value.empty() && is_new && values.size() < kMaxLicences) values.push_back(value);
  };
  if (const bundle::YamlNode* found = card.find(key)) {
    add(*found);
    for (const bundle::YamlNode& item : found->items) add(item);
  }
  return values;
}

bundle::YamlNode card_of(std::string_view block) {
  try {
    return bundle::parse_yaml(block, "README.md");
  } catch (const bundle::Error&) {
    return {};  // hubs read nothing of it either
  }
}

std::string spdx_of(const std::string& name) {
  const std::string folded = bundle::case_folded(name);
  for (const std::string_view id : kSpdx)
    if (bundle::case_folded(id) == folded) return std::string(id);
  return {};
}

}  // namespace

std::string StatedLicence::text() const {
  std::string out = expression;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// "other" says that license_name has the name. Of several licences nothing says whether all or one of them hold.
StatedLicence read_card_licence(std::string_view readme) {
  const bundle::YamlNode card = card_of(block_of(readme));
  std::vector<std::string> names = values_of(card, "license");
  const bool other = names.empty() || (names.size() == 1 && (names[0] == "other" || names[0] == "unknown"));
  const std::vector<std::string> named = values_of(card, "license_name");
  if (other && !named.empty()) names = named;
  const std::string spdx = names.size() == 1 ? spdx_of(names[0]) : "";
  return spdx.empty() ? StatedLicence{.expression = {}, .names = names}
                      : StatedLicence{.expression = spdx, .names = {}};
}

}  // namespace sealift::packager
