// SPDX-License-Identifier: Apache-2.0
// Finds addresses in a text by hand, since the text around them is of many formats; what is found is judged by url.hpp.
// git reads GIT_CONFIG_COUNT from 2.31 on; an older one gets no login, and says so.
#include "packager/host/git_login.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "packager/host/url.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMostLogins = 100;
constexpr const char* kWordEnd = " \t\r\n\"'`<>";
constexpr const char* kAuthorityEnd = "/?#\\ \t\r\n\"'`<>";

[[noreturn]] void refuse_login(const std::string& what, const std::string& where, const std::string& got) {
  throw Error(
      ErrorCode::Usage,
      {.what = what,
       .where = where,
       .expected = "git+https://NAME:PASSWORD@HOST/PATH, where NAME and PASSWORD write @ as %40, / as %2F, : as %3A",
       .got = got,
       .next = "write it so, or leave the login out and give it to git's own credential helper"});
}

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::size_t end_of(const std::string& text, std::size_t begin, const char* marks) {
  return std::min(text.find_first_of(marks, begin), text.size());
}

// ${NAME} by our variable, as uv and pip write it.
std::string with_variables(const std::string& text, const std::string& where) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find("${", at), text.size()), end = text.find('}', begin);
    out += text.substr(at, begin - at);
    if (begin == text.size()) break;
    if (end == text.npos) refuse_login("a repository's login has ${ without }", where, {});
    const std::string name = text.substr(begin + 2, end - begin - 2);
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) refuse_login("a repository's login names a variable that is not set", where, name);
    out += value;
    at = end + 1;
  }
  return out;
}

// What may stand behind a login. The port is looked at here, because Boost 1.81 takes a wrong one for a path.
bool is_host(const std::string& scheme, const std::string& host) {
  const std::size_t colon = host.ends_with(']') ? host.npos : host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  return parse_url(scheme + host) && (!has_port || host.find_first_not_of("0123456789", colon + 1) == host.npos);
}

// What git is told is lines, and a variable ends at its first NUL.
bool is_one_line(const UrlLogin& login) {
  const std::string all = login.name + login.password.value_or("");
  return std::none_of(all.begin(), all.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// The repository that the rest of an address names: without revision, query and fragment.
std::string path_in(const std::string& rest) {
  const std::string path = rest.substr(0, rest.find_first_of("?#"));
  return path.substr(0, path.rfind('@'));
}

}  // namespace

std::string GitLogins::take(const std::string& text, const std::string& where) {
  static constexpr std::string_view kStart = "git+http";
  const std::string lower = in_lower_case(text);
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = lower.find(kStart); at != lower.npos; at = lower.find(kStart, at + 1)) {
    const std::size_t colon = at + kStart.size() + (lower.compare(at + kStart.size(), 1, "s") == 0 ? 1 : 0);
    if (lower.compare(colon, 3, "://") != 0) continue;
    const std::size_t begin = colon + 3, end = end_of(text, begin, kAuthorityEnd), word = end_of(text, end, kWordEnd);
    const std::string scheme = lower.substr(at + 4, begin - at - 4), authority = text.substr(begin, end - begin);
    const std::size_t cut = authority.find('@');
    const std::string host = authority.substr(cut == authority.npos ? 0 : cut + 1);
    const std::string rest = text.substr(end, word - end);
    const bool hides_one = cut == authority.npos && rest.find('@') != rest.npos && !is_host(scheme, host);
    if (host.find('@') != host.npos || hides_one)
      refuse_login("the address of a repository holds a login that cannot be told from its host", where,
                   "git+" + scheme + "…" + rest.substr(rest.rfind('@') == rest.npos ? 0 : rest.rfind('@')));
    if (cut == authority.npos) continue;
    const std::string user = with_variables(authority.substr(0, cut), where);
    const std::optional<UrlLogin> login = login_of(scheme + user + "@" + host + path_in(rest));
    if (!login || !is_host(scheme, host) || user.find('@') != user.npos || !is_one_line(*login))
      refuse_login("the address of a repository is not valid", where, "git+" + scheme + "…@" + host + rest);
    keep({.repository = login->address,
          .server = login->server,
          .name = login->name,
          .password = login->password.value_or(""),
          .has_password = login->password.has_value()},
         where);
    out += text.substr(copied, begin - copied);
    copied = begin + cut + 1;
  }
  return out + text.substr(copied);
}

void GitLogins::keep(Login login, const std::string& where) {
  if (login.name.empty() && !login.has_password) return;
  for (Login& known : logins_) {
    if (known.repository != login.repository) continue;
    if (!known.is_same(login)) refuse_login("one repository has two logins", where, login.repository);
    return;
  }
  if (logins_.size() >= kMostLogins)
    refuse_login("more than " + std::to_string(kMostLogins) + " repositories have a login", where, login.repository);
  logins_.push_back(std::move(login));
}

bool GitLogins::is_only_one_of_server(const Login& login) const {
  return std::all_of(logins_.begin(), logins_.end(),
                     [&](const Login& other) { return other.server != login.server || other.is_same(login); });
}

std::map<std::string, std::string> GitLogins::variables() const {
  std::map<std::string, std::string> variables = {{"GIT_TERMINAL_PROMPT", "0"}};
  std::size_t count = 0;
  const auto set = [&](const std::string& key, const std::string& value) {
    variables["GIT_CONFIG_KEY_" + std::to_string(count)] = key;
    variables["GIT_CONFIG_VALUE_" + std::to_string(count)] = value;
    variables["GIT_CONFIG_COUNT"] = std::to_string(++count);
  };
  for (std::size_t i = 0; i < logins_.size(); ++i) {
    const Login& login = logins_[i];
    const std::string key = "credential." + (is_only_one_of_server(login) ? login.server : login.repository);
    if (!login.has_password) {  // the user's own helpers are asked for the password of this name
      set(key + ".username", login.name);
      continue;
    }
    const std::string name = "SEALIFT_GIT_NAME_" + std::to_string(i);
    const std::string password = "SEALIFT_GIT_PASSWORD_" + std::to_string(i);
    set(key + ".helper", "");  // the user's own helpers for this address are not asked
    set(key + ".helper", "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$" + name + "\" \"$" +
                             password + "\"; }; f");
    variables[name] = login.name;
    variables[password] = login.password;
  }
  return variables;
}

std::string without_logins(const std::string& text) {
  std::string out;
  std::size_t copied = 0;
  const std::string lower = in_lower_case(text);
  for (std::size_t at = lower.find("://"); at != lower.npos; at = lower.find("://", at + 1)) {
    const std::string_view before = std::string_view(lower).substr(0, at);
    if (!before.ends_with("http") && !before.ends_with("https")) continue;
    const std::size_t begin = at + 3, end = end_of(text, begin, kAuthorityEnd);
    const std::size_t cut = std::string_view(text).substr(begin, end - begin).rfind('@');
    if (cut == text.npos) continue;
    out += text.substr(copied, begin - copied);
    copied = begin + cut + 1;
  }
  return out + text.substr(copied);
}

}  // namespace sealift::packager
