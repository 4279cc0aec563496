// SPDX-License-Identifier: Apache-2.0
// pylock -> pages, pages -> links; see signed_addresses.hpp. Of a page only its links are read, as PEP 503 has them:
// that form every index has.
#include "packager/resolve/signed_addresses.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "packager/host/url.hpp"
#include "packager/network/remote_documents.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMostPage = std::uint64_t{64} << 20;

// Names of what signs, lower case: of object stores, and of servers with tokens.
constexpr std::string_view kSecrets[] = {"x-amz-signature",
                                         "x-goog-signature",
                                         "x-oss-signature",
                                         "signature",
                                         "sig",
                                         "token",
                                         "access_token",
                                         "private_token",
                                         "auth",
                                         "key",
                                         "api_key",
                                         "apikey",
                                         "password",
                                         "secret",
                                         "jwt",
                                         "q-signature",
                                         "policy",
                                         "sign"};

bool looks_secret(const std::string& query) {
  for (std::size_t begin = 0; begin <= query.size();) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    std::string name = query.substr(begin, std::min(query.find('=', begin), end) - begin);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (std::find(std::begin(kSecrets), std::end(kSecrets), name) != std::end(kSecrets)) return true;
    begin = end + 1;
  }
  return false;
}

void refuse_own_token(const std::string& name, const std::string& url) {
  const std::optional<Url> parsed = parse_url(url);
  if (!parsed || !parsed->has_query || !looks_secret(parsed->query)) return;
  throw Error(
      ErrorCode::Usage,
      {.what = "the address that the job names for a package holds a token",
       .where = name + " @ " + shown_url(url),
       .expected = "an address that a lock can keep",
       .got = "a query that signs it",
       .next = "fetch the file and name its path (\"NAME @ ./FILE\"), or name an index that has it, with a login"});
}

std::string unescaped(std::string text) {
  for (const std::string_view escape : {"&amp;", "&#38;", "&#x26;"})
    for (std::size_t at; (at = text.find(escape)) != text.npos;) text.replace(at, escape.size(), "&");
  return text;
}

std::vector<std::string> links_of(const std::string& page, const std::string& text) {
  std::vector<std::string> links;
  for (std::size_t at = text.find("href="); at != text.npos; at = text.find("href=", at + 5)) {
    const char quote = at + 5 < text.size() ? text[at + 5] : ' ';
    if (quote != '"' && quote != '\'') continue;
    const std::size_t end = text.find(quote, at + 6);
    if (end == text.npos) break;
    links.push_back(linked_url(page, unescaped(text.substr(at + 6, end - at - 6))));
  }
  return links;
}

// Where the page of a package may be: uv does not say which index it came from.
std::vector<std::string> pages_for(const std::string& name, const LockedIndexes& indexes) {
  std::vector<std::string> pages;
  const auto add = [&](std::string index) {
    const std::size_t scheme = std::min(index.find("://"), index.size());
    if (const std::size_t equals = index.substr(0, scheme).find('='); equals != index.npos) index.erase(0, equals + 1);
    while (index.ends_with('/')) index.pop_back();
    if (index.starts_with("http")) pages.push_back(index + "/" + name + "/");
  };
  add(indexes.default_index);
  for (const std::string& index : indexes.others) add(index);
  for (const std::string& option : indexes.in_files) {
    const std::string value = option.substr(std::min(option.find_first_of(" =") + 1, option.size()));
    if (option.starts_with("-f") || option.starts_with("--find-links"))
      pages.push_back(value);
    else
      add(value);
  }
  return pages;
}

// The first of these pages that links to one of the addresses; empty: none.
std::string page_of(const std::set<std::string>& addresses, const std::vector<std::string>& pages,
                    const HttpLogins& logins) {
  for (const std::string& page : pages) try {
      const std::string url = logins.as_asked(page);
      const std::string body = get_documents({url}, {}, kMostPage, {}, "no page", {}, &logins).front().body;
      for (const std::string& link : links_of(url, body))
        if (addresses.contains(link.substr(0, link.find('?')))) return page;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Network) throw;
    }
  return {};
}

[[noreturn]] void refuse_unknown_page(const std::string& name, const std::string& address) {
  throw Error(ErrorCode::CannotCheck,
              {.what = "an index signs the address of a package, and no page of it could be asked again",
               .where = name + ": " + shown_url(address + "?"),
               .expected = "the file on the page INDEX/NAME/ of an index that the job names",
               .next = "name the index in [python] (default_index, indexes), or fetch the file and require it by its "
                       "path"});
}

}  // namespace

std::vector<std::string> take_signed_addresses(std::string_view pylock, const LockedIndexes& indexes,
                                               HttpLogins& logins) {
  const TomlValue document = parse_toml(pylock, "pylock.toml", ErrorCode::Format);
  TomlTable root(document, "pylock.toml", ErrorCode::Format);
  std::vector<std::string> pages;
  for (TomlTable& package : root.tables("packages")) {
    const std::string name = package.string_or("name", "");
    if (package.is_table("archive")) refuse_own_token(name, package.table("archive").string_or("url", ""));
    std::vector<TomlTable> files = package.tables("wheels");
    if (package.is_table("sdist")) files.push_back(package.table("sdist"));
    std::set<std::string> addresses;  // without their queries
    for (TomlTable& file : files)
      if (const std::string url = file.string_or("url", ""); url.find('?') != url.npos) {
        logins.add_signed(url);
        addresses.insert(url.substr(0, url.find('?')));
      }
    if (addresses.empty()) continue;
    const std::string page = page_of(addresses, pages_for(name, indexes), logins);
    if (page.empty()) refuse_unknown_page(name, *addresses.begin());
    pages.push_back(page);
  }
  return pages;
}

void ask_signed_addresses(const std::vector<std::string>& pages, HttpLogins& logins, const FetchOptions& options) {
  std::vector<std::string> urls;
  for (const std::string& page : pages) urls.push_back(logins.as_asked(page));
  const std::vector<RemoteDocument> documents =
      get_documents(urls, {}, kMostPage, options, "an index that signs the addresses of its files does not answer",
                    "check network, proxy and the login of this index, then run the same command again", &logins);
  for (std::size_t i = 0; i < pages.size(); ++i)
    for (const std::string& link : links_of(urls[i], documents[i].body)) logins.add_signed(link);
}

}  // namespace sealift::packager
