// SPDX-License-Identifier: Apache-2.0
// See shell_text.hpp. A bundle's values are checked when they are read; here they only become words.
#include "installer/activation/shell_text.hpp"

#include <algorithm>

namespace sealift::installer {

std::string replaced(std::string_view text, std::string_view word, const std::string& by) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find(word, at)) != out.npos; at += by.size()) out.replace(at, word.size(), by);
  return out;
}

std::string filled(std::string_view text, const std::map<std::string, std::string, std::less<>>& words) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find('@'), end = begin == text.npos ? begin : text.find('@', begin + 1);
    const auto word = end == text.npos ? words.end() : words.find(text.substr(begin + 1, end - begin - 1));
    const std::size_t plain = word != words.end() ? begin : end == text.npos ? text.size() : end;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (word == words.end()) continue;
    out += word->second;
    text.remove_prefix(end + 1 - begin);
  }
  return out;
}

std::string quoted(const std::string& text, bool csh) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '!' && csh)
      out += "\\!";
    else
      out += c;
  }
  return out + "'";
}

std::string expanded(std::string_view value, const Quote& quote, const std::string& root, const std::string& cache,
                     const std::string& joint) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : joint) + part; };
  while (!value.empty()) {
    const std::size_t at = std::min({value.find(bundle::kPrefixWord), value.find(bundle::kCacheWord), value.size()});
    if (at > 0) add(quote(std::string(value.substr(0, at))));
    value.remove_prefix(at);
    if (value.empty()) break;
    const bool is_prefix = value.starts_with(bundle::kPrefixWord);
    add(is_prefix ? root : cache);
    value.remove_prefix(is_prefix ? bundle::kPrefixWord.size() : bundle::kCacheWord.size());
  }
  return out.empty() ? quote("") : out;
}

std::string in_sh(const bundle::Variables& variables, const std::string& root) {
  if (variables.empty()) return {};
  std::string lines =
      "_SEALIFT_SET=\n_sealift_cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}\n"
      "_sealift_set() {\n"
      "  if ! eval \"[ -n \\\"\\${$1+x}\\\" ]\"; then export \"$1=$2\"; _SEALIFT_SET=\"$_SEALIFT_SET $1\"; fi\n}\n";
  for (const auto& [name, value] : variables)
    lines += "_sealift_set " + name + " " +
             expanded(
                 value, [](const std::string& text) { return quoted(text); }, root, "\"$_sealift_cache\"") +
             "\n";
  return lines + "unset -f _sealift_set\nunset _sealift_cache\n";
}

}  // namespace sealift::installer
