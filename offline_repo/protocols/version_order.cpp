// SPDX-License-Identifier: Apache-2.0
// Read in one pass, in the spellings that PEP 440 normalizes: 1.0-alpha_2, 1.0.c1, 1.0-3, v1.0, 1!2.0.
#include "offline_repo/protocols/version_order.hpp"

#include <algorithm>
#include <initializer_list>

#include "offline_repo/protocols/header_text.hpp"

namespace sealift::offline_repo {

namespace {

bool is_number(char c) {
  return c >= '0' && c <= '9';
}
bool is_separator(char c) {
  return c == '.' || c == '-' || c == '_';
}

VersionNumber number_of(std::string_view digits) {
  const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size());
  return {digits.size() - first, std::string(digits.substr(first))};
}

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  bool done() const { return left_.empty(); }
  bool take(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  std::optional<VersionNumber> number() {
    const std::size_t size = std::min(left_.find_first_not_of("0123456789"), left_.size());
    if (size == 0) return std::nullopt;
    const VersionNumber found = number_of(left_.substr(0, size));
    left_.remove_prefix(size);
    return found;
  }
  // One of `words` with what may stand around it, and its number, which is 0 where none stands.
  std::optional<VersionNumber> marked(std::initializer_list<std::string_view> words) {
    std::string_view rest = left_;
    if (!rest.empty() && is_separator(rest.front())) rest.remove_prefix(1);
    for (const std::string_view word : words) {
      if (!rest.starts_with(word)) continue;
      left_ = rest.substr(word.size());
      std::string_view behind = left_;
      if (behind.size() > 1 && is_separator(behind[0]) && is_number(behind[1])) left_.remove_prefix(1);
      return number().value_or(VersionNumber());
    }
    return std::nullopt;
  }
  // "-3", which is ".post3".
  std::optional<VersionNumber> bare_post() {
    if (left_.size() < 2 || left_[0] != '-' || !is_number(left_[1])) return std::nullopt;
    left_.remove_prefix(1);
    return number();
  }
  // Digits that are behind a dot.
  std::optional<VersionNumber> next_release() {
    if (left_.size() < 2 || left_[0] != '.' || !is_number(left_[1])) return std::nullopt;
    left_.remove_prefix(1);
    return number();
  }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

// False where it is no local label.
bool read_local(std::string_view text, VersionOrder& order) {
  while (true) {
    const std::size_t size = std::min(text.find_first_of("._-"), text.size());
    const std::string_view part = text.substr(0, size);
    const bool plain =
        std::all_of(part.begin(), part.end(), [](char c) { return is_number(c) || (c >= 'a' && c <= 'z'); });
    if (part.empty() || !plain) return false;
    if (std::all_of(part.begin(), part.end(), is_number))
      order.local.emplace_back(1, number_of(part), "");
    else
      order.local.emplace_back(0, VersionNumber(), std::string(part));
    if (size == text.size()) return true;
    text.remove_prefix(size + 1);
  }
}

}  // namespace

std::optional<VersionOrder> version_order(std::string_view version) {
  const std::string lower = lower_case(version);
  Reader reader(lower);
  VersionOrder order{.epoch = {}, .release = {}, .pre = {4, {}}, .post = {0, {}}, .dev = {1, {}}, .local = {}};
  reader.take('v');
  std::optional<VersionNumber> first = reader.number();
  if (first && reader.take('!')) order.epoch = *first, first = reader.number();
  if (!first) return std::nullopt;
  for (std::optional<VersionNumber> one = first; one; one = reader.next_release()) order.release.push_back(*one);
  while (!order.release.empty() && order.release.back().first == 0) order.release.pop_back();
  if (const auto alpha = reader.marked({"alpha", "a"}))
    order.pre = {1, *alpha};
  else if (const auto beta = reader.marked({"beta", "b"}))
    order.pre = {2, *beta};
  else if (const auto candidate = reader.marked({"rc", "c", "preview", "pre"}))
    order.pre = {3, *candidate};
  std::optional<VersionNumber> post = reader.bare_post();
  if (!post) post = reader.marked({"post", "rev", "r"});
  if (post) order.post = {1, *post};
  if (const auto dev = reader.marked({"dev"})) order.dev = {0, *dev};
  if (order.pre.first == 4 && !post && order.dev.first == 0) order.pre.first = 0;
  if (reader.take('+')) return read_local(reader.rest(), order) ? std::optional(order) : std::nullopt;
  return reader.done() ? std::optional(order) : std::nullopt;
}

}  // namespace sealift::offline_repo
