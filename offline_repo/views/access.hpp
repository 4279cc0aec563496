// SPDX-License-Identifier: Apache-2.0
// What each client sees: views of the bundles that its token is good for, or of all where there are no tokens. What a
// client may not see is not in the catalogue that its requests are looked up in, so no route can forget to ask.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "offline_repo/views/tokens.hpp"
#include "offline_repo/views/views.hpp"

namespace sealift::offline_repo {

// One state of the site, which never changes.
class Access {
 public:
  struct Client {
    std::string user;  // the token's name; where there are no tokens the certificate's, or empty
    std::shared_ptr<const Views> views;
  };

  // Views of `before` are taken over where they are the same. `tokens`: nothing where everybody sees everything.
  Access(Held held, std::optional<std::vector<Token>> tokens, const Access* before = nullptr);

  // Nothing unless the header holds one of the tokens or, where it holds none, `certificate` is the name of one: the
  // common name of the certificate that this client has proved to have; empty: it has proved none.
  std::optional<Client> client(std::string_view authorization, std::string_view certificate) const;

  const Held& held() const { return held_; }
  const Views& everything() const { return *everything_; }
  // Names of tokens that see no bundle.
  const std::vector<std::string>& blind() const { return blind_; }
  // For people: what the merged view and those of channels leave out.
  std::vector<std::string> left_out() const;

 private:
  const Held held_;
  ViewMaker maker_;
  const std::optional<std::vector<Token>> tokens_;
  std::shared_ptr<const Views> everything_;
  std::map<std::string, std::shared_ptr<const Views>> seen_;  // by the token's name
  std::vector<std::string> blind_;
};

}  // namespace sealift::offline_repo
