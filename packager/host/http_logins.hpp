// SPDX-License-Identifier: Apache-2.0
// Names and passwords for the servers of indexes, from where uv takes them, so that our own downloads get what uv gets.
// Between lock or job, which name the indexes, and `network`. They stay in memory: no lock, argument or message has
// one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sealift::packager {

struct HttpLogin {
  std::string name, password;

  bool operator==(const HttpLogin&) const = default;
};

inline constexpr std::string_view kLoginRemedy = "give a login for ";

class HttpLogins {
 public:
  // An index, "NAME=ADDRESS" or "ADDRESS". Its login stands in the address, or in UV_INDEX_NAME_USERNAME and
  // UV_INDEX_NAME_PASSWORD; where there is a name alone and UV_KEYRING_PROVIDER is "subprocess", `keyring` is asked.
  void add_index(const std::string& index);

  // How addresses begin whose rest is left to a variable: "https://host/${TOKEN}". What stands for it here is asked,
  // and never shown.
  void add_variable_address(const std::string& address);

  // An address of a file whose query an index made for a while: it is asked, and never shown or kept. Copies of this
  // value know it, too.
  void add_signed(const std::string& url);

  // The text with each such beginning as it was written and no such query, and what is asked for an address that has
  // one.
  std::string as_written(std::string text) const;
  std::string as_asked(const std::string& url) const;

  // The text (requirements, a TOML file) without the login of each http and https address in it; the logins are kept.
  // Addresses of git ("git+https://…") are left to GitLogins.
  std::string take(const std::string& text);

  // For a request to this address: that of its server (scheme, host and port); of several, that of the address with
  // which it has most in common.
  std::optional<HttpLogin> of(const std::string& url) const;

  // What somebody can do when the server of this address asks for a login; begins with kLoginRemedy.
  std::string remedy(const std::string& url) const;

 private:
  std::string unsigned_text(const std::string& text) const;
  struct Known {
    std::string address;  // of an index or a file, without a login
    std::string index;    // its name; may be empty
    std::optional<HttpLogin> login;
  };

  std::vector<Known> known_;
  std::vector<std::pair<std::string, std::string>> beginnings_;  // as written, as asked
  std::shared_ptr<std::map<std::string, std::string>> signed_ =  // without query, with it
      std::make_shared<std::map<std::string, std::string>>();
};

// "UV_INDEX_OURS_USERNAME and UV_INDEX_OURS_PASSWORD", of the index "ours".
std::string login_variables(std::string_view index);

// ${NAME} (A-Z, 0-9, _) by our variable of that name, as uv and pip do it; where there is none it stays.
std::string with_variables(const std::string& text);

// The names in such places.
std::vector<std::string> variables_in(const std::string& text);

}  // namespace sealift::packager
