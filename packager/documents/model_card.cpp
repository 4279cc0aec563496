// SPDX-License-Identifier: Apache-2.0
// Lines KEY: VALUE, KEY: [A, B], and KEY: with lines "- A" behind it; see model_card.hpp. More of YAML is not needed
// to read a name, and is taken for none.
#include "packager/documents/model_card.hpp"

#include <algorithm>
#include <map>

#include "bundle/core/unicode.hpp"
#include "packager/documents/wheel_facts.hpp"

namespace sealift::packager {

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

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// The lines between "---" and "---".
std::string_view block_of(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t first = text.substr(0, kMaxCardBlock).find('\n');
  if (first == text.npos || without_blanks(text.substr(0, first)) != "---") return {};
  text = text.substr(first + 1, kMaxCardBlock);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (without_blanks(text.substr(begin, end - begin)) == "---") return text.substr(0, begin);
    begin = end + 1;
  }
  return {};
}

// One value without its quotation marks, or without the comment behind it.
std::string_view scalar(std::string_view text) {
  text = without_blanks(text);
  if (text.size() > 1 && (text[0] == '"' || text[0] == '\'')) {
    const std::size_t end = text.find(text[0], 1);
    return end == text.npos ? std::string_view() : text.substr(1, end - 1);
  }
  text = without_blanks(text.substr(0, text.find(" #")));
  const bool other = !text.empty() && std::string_view("|>&*!{#").find(text[0]) != std::string_view::npos;
  return other ? std::string_view() : text;
}

class Values {
 public:
  void add(std::string_view key, std::string_view text) {
    const std::string value = shown(scalar(text));
    std::vector<std::string>& list = found_[std::string(key)];
    const bool is_new = std::find(list.begin(), list.end(), value) == list.end();
    if (!value.empty() && is_new && list.size() < kMaxLicences) list.push_back(value);
  }
  void add_all(std::string_view key, std::string_view text) {
    text = without_blanks(text);
    if (!text.starts_with('[')) return add(key, text);
    text = text.substr(1, std::min(text.find(']'), text.size()) - 1);
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      add(key, text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  const std::vector<std::string>& of(const std::string& key) { return found_[key]; }

 private:
  std::map<std::string, std::vector<std::string>> found_;
};

Values values_of(std::string_view block) {
  Values values;
  std::string_view key;  // whose list goes on
  for (std::size_t begin = 0; begin < block.size();) {
    const std::size_t end = std::min(block.find('\n', begin), block.size());
    const std::string_view line = block.substr(begin, end - begin), text = without_blanks(line);
    begin = end + 1;
    if (text.starts_with("- ") && !key.empty()) values.add(key, text.substr(2));
    if (line.empty() || line[0] == ' ' || line[0] == '\t' || line[0] == '-' || line[0] == '#') continue;
    const std::size_t colon = line.find(':');
    key = colon == line.npos ? std::string_view() : line.substr(0, colon);
    if (key != "license" && key != "license_name")
      key = {};
    else
      values.add_all(key, line.substr(colon + 1));
  }
  return values;
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
  Values values = values_of(block_of(readme));
  std::vector<std::string> names = values.of("license");
  const bool other = names.empty() || (names.size() == 1 && (names[0] == "other" || names[0] == "unknown"));
  if (other && !values.of("license_name").empty()) names = values.of("license_name");
  const std::string spdx = names.size() == 1 ? spdx_of(names[0]) : "";
  return spdx.empty() ? StatedLicence{.expression = {}, .names = names}
                      : StatedLicence{.expression = spdx, .names = {}};
}

}  // namespace sealift::packager
