// SPDX-License-Identifier: Apache-2.0
// Read as RFC 9110 prescribes: a header that does not parse counts as absent, and nothing is guessed.
#include "offline_repo/protocols/negotiate.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "offline_repo/protocols/header_text.hpp"

namespace sealift::offline_repo {

namespace {

constexpr IndexFormat kFormats[] = {IndexFormat::Json, IndexFormat::Html, IndexFormat::PlainHtml};

std::vector<std::string_view> trimmed_parts(std::string_view text, char separator) {
  std::vector<std::string_view> parts = bundle::split(text, separator);
  for (std::string_view& part : parts) part = trimmed(part);
  return parts;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Decimal digits; a number that does not fit becomes the largest one, which is outside of every file too.
std::uint64_t saturating_number(std::string_view digits) {
  constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t value = 0;
  for (const char c : digits) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (largest - digit) / 10) return largest;
    value = value * 10 + digit;
  }
  return value;
}

// "0", "0.5", "1.000" -> thousandths.
std::optional<int> quality(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  int value = (text[0] - '0') * 1000;
  if (text.size() == 1) return value;
  const std::string_view decimals = text.substr(2);
  if (text[1] != '.' || (!decimals.empty() && !all_digits(decimals))) return std::nullopt;
  for (std::size_t i = 0, weight = 100; i < decimals.size(); ++i, weight /= 10)
    value += (decimals[i] - '0') * static_cast<int>(weight);
  return value <= 1000 ? std::optional(value) : std::nullopt;
}

struct Preference {
  std::string range;  // "text/html", "text/*", "*/*"
  int quality = 1000;
};

std::vector<Preference> parse_accept(std::string_view accept) {
  std::vector<Preference> preferences;
  for (const std::string_view item : trimmed_parts(accept, ',')) {
    const std::vector<std::string_view> parts = trimmed_parts(item, ';');
    Preference preference{.range = lower_case(parts[0])};
    bool valid = !preference.range.empty();
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (!lower_case(parts[i].substr(0, 2)).starts_with("q=")) continue;
      const std::optional<int> value = quality(parts[i].substr(2));
      valid = valid && value;
      preference.quality = value.value_or(0);
    }
    if (valid) preferences.push_back(std::move(preference));
  }
  return preferences;
}

// How exactly a media range names a format: 3 itself, 2 its type, 1 anything, 0 not at all.
int exactness(std::string_view range, IndexFormat format) {
  const std::string_view type = format == IndexFormat::PlainHtml ? "text/html" : content_type(format);
  if (range == type) return 3;
  if (format == IndexFormat::Json &&
      (range == "application/vnd.pypi.simple.latest+json" || range == "application/json"))
    return 3;
  if (format == IndexFormat::Html && range == "application/vnd.pypi.simple.latest+html") return 3;
  if (range.ends_with("/*") && type.starts_with(range.substr(0, range.size() - 1))) return 2;
  return range == "*/*" ? 1 : 0;
}

}  // namespace

std::string_view content_type(IndexFormat format) {
  switch (format) {
    case IndexFormat::Json:
      return "application/vnd.pypi.simple.v1+json";
    case IndexFormat::Html:
      return "application/vnd.pypi.simple.v1+html";
    case IndexFormat::PlainHtml:
      return "text/html; charset=utf-8";
  }
  return "";
}

std::optional<IndexFormat> choose_format(std::string_view accept, std::string_view asked) {
  if (!asked.empty()) {
    for (const IndexFormat format : kFormats)
      if (exactness(lower_case(asked), format) == 3) return format;
    return std::nullopt;
  }
  if (trimmed(accept).empty()) accept = "*/*";
  const std::vector<Preference> preferences = parse_accept(accept);
  std::optional<IndexFormat> best;
  std::tuple<int, int, int> best_score;
  for (const IndexFormat format : kFormats) {
    int exact = 0, wish = 0;
    for (const Preference& preference : preferences)  // the range that names a format most exactly decides
      if (const int found = exactness(preference.range, format); found > exact) {
        exact = found;
        wish = preference.quality;
      }
    const int ours = exact > 1 ? -static_cast<int>(format) : static_cast<int>(format);
    const std::tuple score(wish, exact, ours);
    if (wish == 0 || (best && score <= best_score)) continue;
    best = format;
    best_score = score;
  }
  return best;
}

RangeAnswer answer_range(std::string_view header, std::uint64_t size) {
  const RangeAnswer whole{.kind = RangeKind::Whole, .range = {.first = 0, .count = size}};
  const std::size_t equals = header.find('=');
  if (equals == header.npos || lower_case(trimmed(header.substr(0, equals))) != "bytes") return whole;
  const std::string_view spec = trimmed(header.substr(equals + 1));
  const std::size_t dash = spec.find('-');
  if (dash == spec.npos) return whole;
  const std::string_view from = spec.substr(0, dash), to = spec.substr(dash + 1);
  if ((!from.empty() && !all_digits(from)) || (!to.empty() && !all_digits(to)) || (from.empty() && to.empty()))
    return whole;
  const std::uint64_t last = saturating_number(to);
  if (from.empty()) {  // the last N bytes
    const std::uint64_t count = std::min(last, size);
    if (count == 0) return {.kind = RangeKind::Unsatisfiable};
    return {.kind = RangeKind::Part, .range = {.first = size - count, .count = count}};
  }
  const std::uint64_t first = saturating_number(from);
  if (!to.empty() && last < first) return whole;
  if (first >= size) return {.kind = RangeKind::Unsatisfiable};
  const std::uint64_t count = to.empty() || last >= size ? size - first : last - first + 1;
  return {.kind = RangeKind::Part, .range = {.first = first, .count = count}};
}

bool lists_etag(std::string_view header, std::string_view etag) {
  if (header.empty()) return false;
  for (std::string_view item : trimmed_parts(header, ',')) {
    if (item == "*") return true;
    if (item.starts_with("W/")) item.remove_prefix(2);
    if (item == etag) return true;
  }
  return false;
}

}  // namespace sealift::offline_repo
