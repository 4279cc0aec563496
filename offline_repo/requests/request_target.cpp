// SPDX-License-Identifier: Apache-2.0
// What cannot be decoded is refused as a whole; nothing is repaired or guessed.
#include "offline_repo/requests/request_target.hpp"

#include <algorithm>

namespace sealift::offline_repo {

namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Nothing for a malformed escape or a control character.
std::optional<std::string> percent_decoded(std::string_view text) {
  if (text.find('%') == text.npos) {  // as nearly all are
    if (std::any_of(text.begin(), text.end(), is_control)) return std::nullopt;
    return std::string(text);
  }
  const auto nibble = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3 || nibble(text[i + 1]) < 0 || nibble(text[i + 2]) < 0) return std::nullopt;
      c = static_cast<char>(nibble(text[i + 1]) * 16 + nibble(text[i + 2]));
      i += 2;
    }
    if (is_control(c)) return std::nullopt;
    out.push_back(c);
  }
  return out;
}

// Without the scheme and host of an absolute form.
std::string_view without_host(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (!text.starts_with("http") || scheme >= 6) return text;
  const std::size_t path = text.find('/', scheme + 3);
  return path == text.npos ? "/" : text.substr(path);
}

}  // namespace

std::optional<ViewTarget> parse_view_target(std::string_view target) {
  target = without_host(target);
  const bool registry = target.starts_with("/v2/c/") || target.starts_with("/v2/b/");
  if (registry) target.remove_prefix(3);
  if (!target.starts_with("/c/") && !target.starts_with("/b/")) return std::nullopt;
  const std::size_t end = std::min(target.find_first_of("/?", 3), target.size());
  const bool slash = end < target.size() && target[end] == '/';
  return ViewTarget{.kind = target[1],
                    .name = target.substr(3, end - 3),
                    .rest = slash ? target.substr(end) : std::string_view(),
                    .registry = registry};
}

std::string joined(const std::vector<std::string>& segments, std::size_t from, std::size_t to) {
  std::string path;
  for (std::size_t i = from; i < to; ++i) path += (i > from ? "/" : "") + segments[i];
  return path;
}

std::optional<Target> parse_target(std::string_view text) {
  text = without_host(text);
  if (!text.starts_with('/')) return std::nullopt;
  Target target;
  const std::size_t question = std::min(text.find('?'), text.size());
  if (question < text.size()) target.query = text.substr(question + 1);
  if (!percent_decoded(target.query)) return std::nullopt;  // a redirect repeats it, so it must hold no line break
  const std::string_view path = text.substr(0, question);
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    std::optional<std::string> segment = percent_decoded(path.substr(begin, end - begin));
    if (!segment) return std::nullopt;
    target.segments.push_back(*std::move(segment));
    begin = end + 1;
  }
  return target;
}

std::string requested_format(std::string_view query) {
  for (std::size_t begin = 0; begin < query.size();) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view pair = query.substr(begin, end - begin);
    if (pair.starts_with("format=")) return percent_decoded(pair.substr(7)).value_or("malformed");
    begin = end + 1;
  }
  return {};
}

std::vector<std::string> form_values(std::string_view form, std::string_view key) {
  std::vector<std::string> values;
  for (std::size_t begin = 0; begin < form.size();) {
    const std::size_t end = std::min(form.find('&', begin), form.size());
    const std::string_view pair = form.substr(begin, end - begin);
    begin = end + 1;
    if (!pair.starts_with(key) || pair.substr(key.size(), 1) != "=") continue;
    std::string value(pair.substr(key.size() + 1));
    std::replace(value.begin(), value.end(), '+', ' ');
    if (std::optional<std::string> decoded = percent_decoded(value)) values.push_back(*std::move(decoded));
  }
  return values;
}

std::string form_value(std::string_view form, std::string_view key, std::string_view otherwise) {
  const std::vector<std::string> values = form_values(form, key);
  return values.empty() ? std::string(otherwise) : values[0];
}

bool form_flag(std::string_view form, std::string_view key) {
  const std::string value = form_value(form, key);
  return value == "true" || value == "True" || value == "1";
}

}  // namespace sealift::offline_repo
