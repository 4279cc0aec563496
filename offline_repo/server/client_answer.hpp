// SPDX-License-Identifier: Apache-2.0
// What one client is answered: its token decides which bundles it sees, its target which view, routes.hpp the rest.
// Here is what the routes need of the server's state; they themselves are pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "offline_repo/requests/response.hpp"
#include "offline_repo/server/server_state.hpp"

namespace sealift::offline_repo {

class ClientAnswer {
 public:
  // `state` must outlive this. `admin`: only operators are answered.
  ClientAnswer(ServerState& state, bool admin) : state_(state), admin_(admin) {}

  // Who asks, by the header of its token or by the name in its certificate; returns its name, which may be empty. A
  // client that changes its token on a connection is another one from there on.
  std::string see(std::string_view authorization, std::string_view certificate);
  // The view that the target names; the target is then one within it.
  void find(Request& request);
  // The most bytes of a body that are read for the answer.
  std::uint64_t wanted_body(const Request& request) const;
  // The response points into a view that is held from here on until forget().
  Response respond(const Request& request);
  void forget();

 private:
  Response by_digest(const Request& request, Response missing);

  ServerState& state_;
  const bool admin_;
  std::shared_ptr<const Views> views_;  // what this client sees, for one answer; null: it has no token
  std::shared_ptr<const View> view_;    // that which it asks
  std::string view_name_;               // empty: the merged one
};

}  // namespace sealift::offline_repo
