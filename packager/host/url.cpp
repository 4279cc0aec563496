// SPDX-License-Identifier: Apache-2.0
// The Boost.URL door; see url.hpp. Its views point into the text that they were made from, so what leaves is copied.
#include "packager/host/url.hpp"

#include <algorithm>
#include <boost/url/encode.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/pct_string_view.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <boost/url/url.hpp>
#include <cctype>

namespace sealift::packager {

namespace urls = boost::urls;

namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::string Url::file_name() const {
  return percent_decoded(std::string_view(path).substr(path.rfind('/') + 1));
}

std::optional<Url> parse_url(std::string_view text) {
  const auto parsed = urls::parse_uri(text);
  if (!parsed) return std::nullopt;
  const urls::url_view& view = *parsed;
  Url url{.scheme = lower_case(view.scheme()),
          .host = lower_case(view.host()),
          .path = std::string(view.encoded_path()),
          .query = std::string(view.encoded_query()),
          .has_credentials = view.has_userinfo(),
          .has_query = view.has_query(),
          .has_fragment = view.has_fragment()};
  // Boost 1.81 ends the host of "http://127.0.0.1.example/x" after the address, and begins the path with the rest.
  if (view.has_authority() && !url.path.empty() && url.path.front() != '/') {
    url.host += lower_case(url.path.substr(0, url.path.find_first_of(":/")));
    url.path.erase(0, std::min(url.path.find('/'), url.path.size()));
  }
  return url;
}

std::optional<UrlLogin> login_of(std::string_view text) {
  const auto parsed = urls::parse_uri(text);
  if (!parsed || !parsed->has_userinfo()) return std::nullopt;
  const std::string scheme = lower_case(parsed->scheme());
  if (scheme != "http" && scheme != "https") return std::nullopt;
  return UrlLogin{.address = std::string(urls::url(*parsed).remove_userinfo().buffer()),
                  .server = scheme + "://" + std::string(parsed->encoded_host_and_port()),
                  .name = parsed->user(),
                  .password = parsed->has_password() ? std::optional(parsed->password()) : std::nullopt};
}

std::string file_url(const std::filesystem::path& path) {
  return "file://" + percent_encoded(path.string(), "/+");
}

std::string percent_encoded(std::string_view text, const char* kept) {
  return urls::encode(text, urls::unreserved_chars + urls::grammar::lut_chars(kept));
}

std::string percent_decoded(std::string_view text) {
  const auto escaped = urls::make_pct_string_view(text);
  return escaped ? escaped->decode() : std::string(text);
}

std::string shown_url(const std::string& text) {
  const std::string shown = without_credentials(text);
  const std::size_t query = shown.find('?');
  return query == shown.npos ? shown : shown.substr(0, query) + "?...";
}

std::string without_queries(const std::string& text) {
  static constexpr std::string_view kEnd = " \t\r\n\"'`<>)";
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = text.find("http"); at != text.npos; at = text.find("http", at + 4)) {
    if (at < copied) continue;
    const std::string_view rest = std::string_view(text).substr(at);
    if (!rest.starts_with("http://") && !rest.starts_with("https://")) continue;
    const std::size_t end = std::min(text.find_first_of(kEnd, at), text.size());
    const std::size_t query = text.find('?', at);
    if (query >= end) continue;
    const std::size_t fragment = std::min(text.find('#', query), end);
    out += text.substr(copied, query - copied) + "?...";
    copied = fragment;
  }
  return out + text.substr(copied);
}

std::string linked_url(const std::string& page, const std::string& link) {
  const auto base = urls::parse_uri(page);
  const auto target = urls::parse_uri_reference(link);
  urls::url out;
  if (!base || !target || !urls::resolve(*base, *target, out)) return {};
  return std::string(out.buffer());
}

std::string without_credentials(const std::string& text) {
  if (const auto parsed = urls::parse_uri(text))
    return parsed->has_userinfo() ? std::string(urls::url(*parsed).remove_userinfo().buffer()) : text;
  // Not valid, perhaps because of what stands in the password: then everything up to the last '@' may be part of it.
  const std::size_t at = text.rfind('@');
  if (at == text.npos) return text;
  const std::size_t scheme = text.find("://");
  return (scheme < at ? text.substr(0, scheme + 3) : "") + text.substr(at + 1);
}

}  // namespace sealift::packager
