// SPDX-License-Identifier: Apache-2.0
// Names and passwords of git repositories, taken out of their addresses before anybody else sees these: every user can
// read the arguments of a process, and git hands an address on to the programs that it starts. git gets them back by a
// credential helper that stands in its environment, which the same user alone can read; no file holds them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sealift::packager {

class GitLogins {
 public:
  // The text (requirements, a TOML file) without the login of each git+http and git+https address in it; the logins are
  // kept here. ${NAME} in a login is our variable of that name. Throws Usage, with `where` and without any part of the
  // login, for an address whose login cannot be told from its host, such as git+https://me:x@y@h/a.
  std::string take(const std::string& text, const std::string& where);

  bool empty() const { return logins_.empty(); }

  // For git, or for a program that starts it. A server gets the one login that was named for it; of several, each is
  // given for its own repository alone. git asks nobody for what it then lacks.
  std::map<std::string, std::string> variables() const;

 private:
  struct Login {
    std::string repository, server;  // both without a login
    std::string name, password;
    bool has_password = false;

    bool is_same(const Login& other) const {
      return name == other.name && password == other.password && has_password == other.has_password;
    }
  };

  void keep(Login login, const std::string& where);
  bool is_only_one_of_server(const Login& login) const;

  std::vector<Login> logins_;
};

// For messages: the text without the login of any http or https address in it.
std::string without_logins(const std::string& text);

}  // namespace sealift::packager
