// SPDX-License-Identifier: Apache-2.0
// See page_reader.hpp.
#include "offline_repo/protocols/page_reader.hpp"

#include <algorithm>

#include "offline_repo/protocols/header_text.hpp"

namespace sealift::offline_repo {

namespace {

double quality_of(std::string_view parameters) {
  const std::size_t at = parameters.find("q=");
  if (at == parameters.npos) return 1;
  const std::string_view text = parameters.substr(at + 2);
  if (!text.starts_with('0')) return 1;
  double value = 0, unit = 0.1;
  for (const char c : text.substr(std::min<std::size_t>(2, text.size()), 3)) {
    if (c < '0' || c > '9') break;
    value += unit * (c - '0');
    unit /= 10;
  }
  return value;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-:[]").find(c) != std::string_view::npos;
  });
}

}  // namespace

PageLanguage choose_language(std::string_view asked, std::string_view accept) {
  if (asked == "zh") return PageLanguage::Chinese;
  if (asked == "en") return PageLanguage::English;
  double english = 0, chinese = 0;
  for (std::size_t begin = 0; begin < accept.size();) {
    const std::size_t end = std::min(accept.find(',', begin), accept.size());
    const std::string one = lower_case(trimmed(accept.substr(begin, end - begin)));
    const std::size_t cut = std::min(one.find(';'), one.size());
    const double quality = quality_of(std::string_view(one).substr(cut));
    if (one.starts_with("zh")) chinese = std::max(chinese, quality);
    if (one.starts_with("en")) english = std::max(english, quality);
    begin = end + 1;
  }
  return chinese > english ? PageLanguage::Chinese : PageLanguage::English;
}

PageAddress page_address(std::string_view host, std::string_view forwarded_proto, std::string_view registry_path) {
  const std::string place = is_host(host) ? std::string(host) : "THIS-ADDRESS";
  const std::string scheme = forwarded_proto == "https" ? "https://" : "http://";
  PageAddress address{.url = scheme + place, .registry = place, .host = place, .plain = forwarded_proto != "https"};
  if (registry_path.ends_with("/v2")) {  // "/c/prod/v2"
    registry_path.remove_suffix(3);
    address.url += registry_path;
    address.registry += registry_path;
    if (!registry_path.empty()) address.home = "../../";
  }
  return address;
}

}  // namespace sealift::offline_repo
