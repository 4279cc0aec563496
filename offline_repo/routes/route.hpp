// SPDX-License-Identifier: Apache-2.0
// A row of the table of routes (route_table.cpp), and what its function is given. Each family of clients has a file of
// such functions; none of them asks which path it was.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "offline_repo/requests/request_target.hpp"
#include "offline_repo/requests/response.hpp"
#include "offline_repo/views/pages.hpp"

namespace sealift::offline_repo {

// Whom a route answers.
enum class Who {
  Anybody,  // without a token
  Admin,    // operators, at the address of --admin-listen
  Client,   // whose token is good for it; what a client may not see is not in its catalogue
};

// One request, with what its path names. Its parts outlive the answer.
struct Asked {
  const Catalogue& catalogue;
  const Pages& pages;
  const Request& request;
  const Target& target;

  std::map<std::string_view, std::string> names = {};  // what stands for the pattern's words in capitals
  const ServedRepository* repository = nullptr;        // of ID; null: nobody carries it
  const IndexedWheel* wheel = nullptr;                 // of WHEEL

  // `otherwise` where the path ends before it.
  std::string name(std::string_view word, std::string_view otherwise = {}) const {
    const auto found = names.find(word);
    return found == names.end() ? std::string(otherwise) : found->second;
  }
};

struct Route {
  std::string_view method;  // "GET", and HEAD with it; or "POST"
  std::string_view path;    // see path_pattern.hpp
  Who who;
  RouteKind counted;                 // as metrics name it
  Response (*answer)(const Asked&);  // throws nothing; null: server/status_pages.hpp answers, which knows the site
};

}  // namespace sealift::offline_repo
