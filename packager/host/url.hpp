// SPDX-License-Identifier: Apache-2.0
// URLs by RFC 3986: taken apart, made from paths, and made fit for messages. Every step that looks into a URL does it
// here; url.cpp is the only door to Boost.URL, so that nobody searches for slashes by hand.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sealift::packager {

struct Url {
  std::string scheme;  // lower case
  std::string host;    // lower case, decoded; empty when there is none
  std::string path;    // percent-encoded, as it was written
  std::string query;   // likewise, without its '?'
  bool has_credentials = false;
  bool has_query = false;
  bool has_fragment = false;

  // The last segment of the path, decoded.
  std::string file_name() const;
};

// Nothing when the text is not an absolute URL.
std::optional<Url> parse_url(std::string_view text);

struct UrlLogin {
  std::string address;  // the URL without name and password
  std::string server;   // scheme, host and port of it
  std::string name;     // decoded
  std::optional<std::string> password;
};

// The name of an http or https URL, and the password where it has one; nothing of a URL without.
std::optional<UrlLogin> login_of(std::string_view text);

// "file:///…" of an absolute path.
std::string file_url(const std::filesystem::path& path);

// Everything but RFC 3986's unreserved characters and those in `kept` as %XX.
std::string percent_encoded(std::string_view text, const char* kept = "");

// The inverse; a text with a malformed escape comes back as it is.
std::string percent_decoded(std::string_view text);

// For messages and logs: the text without a name and a password before its host, whether it is a valid URL or not.
std::string without_credentials(const std::string& text);

// An address for messages: without credentials, and "?..." for a query, which may be a token.
std::string shown_url(const std::string& text);

// A text with "?..." for the query of each http and https address in it.
std::string without_queries(const std::string& text);

// Where a link of a page leads; empty where it is malformed.
std::string linked_url(const std::string& page, const std::string& link);

}  // namespace sealift::packager
