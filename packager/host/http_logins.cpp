// SPDX-License-Identifier: Apache-2.0
// Addresses, variables and keyring; see http_logins.hpp. What uv does: crates/uv-auth of its sources.
#include "packager/host/http_logins.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "packager/host/process.hpp"
#include "packager/host/url.hpp"
#include "packager/host/uv.hpp"

namespace sealift::packager {

namespace {

constexpr std::string_view kOfVariables = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
constexpr std::string_view kEndOfAuthority = "/?#\\ \t\r\n\"'`<>";

std::string variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// "UV_INDEX_OURS" of "ours".
std::string variable_stem(std::string_view index) {
  std::string stem = "UV_INDEX_";
  for (const unsigned char c : index) stem += std::isalnum(c) != 0 ? static_cast<char>(std::toupper(c)) : '_';
  return stem;
}

// "https://host:port" in lower case, without the scheme's own port; empty when it is no address of a web server.
std::string server_of(const std::string& url) {
  const std::size_t colon = url.find("://");
  if (colon == url.npos) return {};
  std::string server = url.substr(0, url.find_first_of(kEndOfAuthority, colon + 3));
  if (const std::size_t at = server.rfind('@'); at != server.npos) server.erase(colon + 3, at - colon - 2);
  std::transform(server.begin(), server.end(), server.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto& [scheme, port] : {std::pair("https://", ":443"), std::pair("http://", ":80")}) {
    if (!server.starts_with(scheme)) continue;
    if (server.ends_with(port)) server.erase(server.size() - std::string_view(port).size());
    return server;
  }
  return {};
}

std::string host_of(const std::string& url) {
  const std::optional<Url> parsed = parse_url(url);
  return parsed ? parsed->host : std::string();
}

// "NAME:PASSWORD" as it stands before the '@' of an address.
HttpLogin login_in(const std::string& userinfo) {
  const std::size_t colon = std::min(userinfo.find(':'), userinfo.size());
  return {.name = percent_decoded(userinfo.substr(0, colon)),
          .password = percent_decoded(userinfo.substr(std::min(colon + 1, userinfo.size())))};
}

// As uv asks it: for the index, then for the server.
std::string keyring_password(const std::string& address, const std::string& name) {
  if (variable("UV_KEYRING_PROVIDER") != "subprocess" || find_program("keyring").empty()) return {};
  const std::string server = server_of(address);
  for (const std::string& service : {address, server.substr(server.find("://") + 3)}) {
    const ProcessResult said = run_process({"keyring", "get", service, name}, keyring_variables());
    if (said.exit_code == 0 && said.out.size() > 1) return said.out.substr(0, said.out.find_last_not_of("\r\n") + 1);
  }
  return {};
}

// Of the paths of two addresses of one server.
std::size_t common_length(const std::string& a, const std::string& b) {
  const auto path = [](const std::string& url) {
    return std::string_view(url).substr(std::min(url.find('/', url.find("://") + 3), url.size()));
  };
  const std::string_view one = path(a), other = path(b);
  const auto end = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return static_cast<std::size_t>(end.first - one.begin());
}

}  // namespace

std::string login_variables(std::string_view index) {
  return variable_stem(index) + "_USERNAME and " + variable_stem(index) + "_PASSWORD";
}

void HttpLogins::add_index(const std::string& index) {
  const std::size_t colon = std::min(index.find("://"), index.size());
  const std::size_t equals = index.substr(0, colon).find('=');
  const std::string name = equals == index.npos ? "" : index.substr(0, equals);
  HttpLogins inside;
  Known known{.address = inside.take(index.substr(name.empty() ? 0 : equals + 1)), .index = name, .login = {}};
  if (server_of(known.address).empty()) return;
  HttpLogin login = inside.known_.empty() ? HttpLogin{} : *inside.known_.front().login;
  if (!name.empty() && login == HttpLogin{})
    login = {.name = variable(variable_stem(name) + "_USERNAME"),
             .password = variable(variable_stem(name) + "_PASSWORD")};
  if (!login.name.empty() && login.password.empty()) login.password = keyring_password(known.address, login.name);
  if (login != HttpLogin{}) known.login = login;
  known_.push_back(std::move(known));
}

void HttpLogins::add_variable_address(const std::string& address) {
  beginnings_.emplace_back(address, with_variables(address));
}

void HttpLogins::add_signed(const std::string& url) {
  if (const std::size_t query = url.find('?'); query != url.npos)
    signed_->insert_or_assign(url.substr(0, query), url.substr(0, url.find('#')));
}

// Addresses end where TOML, a requirement or a sentence goes on.
std::string HttpLogins::unsigned_text(const std::string& text) const {
  if (signed_->empty()) return text;
  std::string out;
  std::size_t copied = 0;
  for (std::size_t query = text.find('?'); query != text.npos; query = text.find('?', query + 1)) {
    const std::size_t begin = text.find_last_of(" \t\r\n\"'`<>(", query) + 1;
    if (!signed_->contains(text.substr(begin, query - begin))) continue;
    out += text.substr(copied, query - copied);
    copied = std::min(text.find_first_of("# \t\r\n\"'`<>)", query), text.size());
  }
  return out + text.substr(copied);
}

std::string HttpLogins::as_written(std::string text) const {
  text = unsigned_text(text);
  for (const auto& [written, asked] : beginnings_)
    for (std::size_t at = text.find(asked); at != text.npos; at = text.find(asked, at + written.size()))
      if (const std::size_t end = at + asked.size();
          end == text.size() || kEndOfAuthority.find(text[end]) != kEndOfAuthority.npos)
        text.replace(at, asked.size(), written);
  return text;
}

std::string HttpLogins::as_asked(const std::string& url) const {
  if (const auto found = signed_->find(url); found != signed_->end()) return found->second;
  for (const auto& [written, asked] : beginnings_)
    if (url.starts_with(written)) return asked + url.substr(written.size());
  return url;
}

std::string HttpLogins::take(const std::string& text) {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t colon = text.find("://"); colon != text.npos; colon = text.find("://", colon + 1)) {
    std::size_t start = colon;
    while (start > 0 && std::isalnum(static_cast<unsigned char>(text[start - 1])) != 0) --start;
    const bool of_git = start > 0 && text[start - 1] == '+';
    const std::size_t begin = colon + 3, end = std::min(text.find_first_of(kEndOfAuthority, begin), text.size());
    const std::size_t at = std::string_view(text).substr(begin, end - begin).rfind('@');
    if (of_git || at == text.npos || server_of(text.substr(start, end - start)).empty()) continue;
    const std::size_t word = std::min(text.find_first_of(" \t\r\n\"'`<>", end), text.size());
    known_.push_back({.address = text.substr(start, begin - start) + text.substr(begin + at + 1, word - begin - at - 1),
                      .index = {},
                      .login = login_in(text.substr(begin, at))});
    out += text.substr(copied, begin - copied);
    copied = begin + at + 1;
  }
  return out + text.substr(copied);
}

std::optional<HttpLogin> HttpLogins::of(const std::string& url) const {
  const std::string server = server_of(url);
  const Known* best = nullptr;
  for (const Known& one : known_)
    if (one.login && !server.empty() && server_of(one.address) == server &&
        (best == nullptr || common_length(one.address, url) > common_length(best->address, url)))
      best = &one;
  return best == nullptr ? std::nullopt : best->login;
}

std::string HttpLogins::remedy(const std::string& url) const {
  const std::string server = server_of(url), host = host_of(url);
  std::string named, unnamed;
  for (const Known& one : known_) {
    if (server_of(one.address) != server) continue;
    if (one.index.empty())
      unnamed = one.address;
    else if (named.find(login_variables(one.index)) == named.npos)
      named += (named.empty() ? "set " : ", or ") + login_variables(one.index);
  }
  const std::string netrc =
      "write \"machine " + host + " login NAME password PASSWORD\" into ~/.netrc (or NETRC's file)";
  std::string next = std::string(kLoginRemedy) + host + ": " + (named.empty() ? netrc : named + ", or " + netrc);
  if (named.empty() && !unnamed.empty())
    next += ", or name the index in [python] of the job, indexes = [{ name = \"ours\", url = \"" + unnamed +
            "\" }], and set " + login_variables("ours");
  if (of(url)) next += "; the server does not accept the given one";
  return as_written(next);
}

std::string with_variables(const std::string& text) {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = text.find("${"); at != text.npos; at = text.find("${", at + 1)) {
    const std::size_t end = text.find_first_not_of(kOfVariables, at + 2);
    if (end == text.npos || end == at + 2 || text[end] != '}') continue;
    const char* const value = std::getenv(text.substr(at + 2, end - at - 2).c_str());
    if (value == nullptr) continue;
    out += text.substr(copied, at - copied) + value;
    copied = end + 1;
  }
  return out + text.substr(copied);
}

std::vector<std::string> variables_in(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find("${"); at != text.npos; at = text.find("${", at + 1)) {
    const std::size_t end = text.find_first_not_of(kOfVariables, at + 2);
    if (end != text.npos && end != at + 2 && text[end] == '}') names.push_back(text.substr(at + 2, end - at - 2));
  }
  return names;
}

}  // namespace sealift::packager
