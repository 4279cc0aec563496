// SPDX-License-Identifier: Apache-2.0
// Request -> row of the table -> its function. The segments of a path are compared with names of the catalogue. There
// is no folder behind them, so nothing can be reached that a signed bundle does not list.
#include "offline_repo/routes/routes.hpp"

#include <optional>

#include "offline_repo/routes/answers.hpp"
#include "offline_repo/routes/hub_routes.hpp"
#include "offline_repo/routes/oci_routes.hpp"
#include "offline_repo/routes/route_table.hpp"

namespace sealift::offline_repo {

namespace {

Response read_only() {
  Response response = refusal(405, "this repository is read only: GET and HEAD");
  response.headers.emplace_back("Allow", "GET, HEAD");
  return response;
}

bool is_of_registry(const Route& route) {
  return route.counted == RouteKind::Registry || route.counted == RouteKind::Blob;
}

// Of a repository of the hub that nobody carries.
bool names_nothing(const Asked& asked) {
  return asked.names.contains("ID") && asked.repository == nullptr;
}

// Nothing where the row is not for this method. A row for POST says to a GET how it is asked.
std::optional<Response> answer_by(const Route& route, const Asked& asked, bool reads) {
  const bool posts = asked.request.method == "POST";
  if (names_nothing(asked) && (reads || posts)) return no_hub_repository();
  if (reads || asked.request.method == route.method) return route.answer(asked);
  if (is_of_registry(route)) return registry_read_only();
  return std::nullopt;
}

}  // namespace

std::uint64_t wanted_body(const Catalogue& catalogue, const Pages& pages, const Request& request) {
  constexpr std::uint64_t kMaxBody = std::uint64_t{256} << 10;  // some thousand paths
  if (request.method != "POST") return 0;
  const std::optional<Target> target = parse_target(request.target);
  if (!target) return 0;
  Asked asked{.catalogue = catalogue, .pages = pages, .request = request, .target = *target};
  const Route* route = find_route(asked);
  return route != nullptr && route->method == "POST" && !names_nothing(asked) ? kMaxBody : 0;
}

// The pages end with this call, so what they keep is copied.
Response respond(const Catalogue& catalogue, const Request& request) {
  const Pages pages(catalogue);
  Response response = respond(catalogue, pages, request);
  if (const auto* kept = std::get_if<KeptText>(&response.body)) response.body = std::string(kept->text);
  return response;
}

Response respond(const Catalogue& catalogue, const Pages& pages, const Request& request) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const std::optional<Target> target = parse_target(request.target);
  if (!target)
    return reads ? refusal(400, "the address is malformed: expected /path with %XX escapes of printable characters")
                 : read_only();
  Asked asked{.catalogue = catalogue, .pages = pages, .request = request, .target = *target};
  const Route* route = find_route(asked);
  if (route == nullptr) return reads ? nothing_there(asked) : read_only();
  std::optional<Response> response = answer_by(*route, asked, reads);
  if (!response) return read_only();
  if (is_of_registry(*route)) response->headers.emplace_back("Docker-Distribution-API-Version", "registry/2.0");
  const bool nobody_knows = route->counted == RouteKind::Front && response->status == 404;
  response->route = nobody_knows ? RouteKind::Other : route->counted;
  return *std::move(response);
}

}  // namespace sealift::offline_repo
