// SPDX-License-Identifier: Apache-2.0
// The segments of a path are compared with names of the catalogue. There is no folder behind them, so nothing can be
// reached that a signed bundle does not list as a wheel, a file of a hub's repository, an image or an rpm package.
#include "offline_repo/routes/routes.hpp"

#include <optional>

#include "offline_repo/protocols/hub_target.hpp"
#include "offline_repo/requests/request_target.hpp"
#include "offline_repo/routes/answers.hpp"
#include "offline_repo/routes/apt_routes.hpp"
#include "offline_repo/routes/entry_routes.hpp"
#include "offline_repo/routes/hub_routes.hpp"
#include "offline_repo/routes/oci_routes.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::string_view kMetadataSuffix = ".metadata";

Response not_found() {
  return refusal(404, "there is no such page or file here; the index is at simple/");
}

// `location` is relative and made of the catalogue's names. Of what the client sent only the query is repeated.
Response moved(std::string location, const Target& target) {
  if (!target.query.empty()) location += "?" + target.query;
  Response response = refusal(301, "the page is at " + location);
  response.headers.emplace_back("Location", std::move(location));
  return response;
}

Response counted_as(RouteKind route, Response response) {
  response.route = route;
  return response;
}

Response index_page(const Request& request, const Target& target, const IndexPage& page) {
  const std::optional<IndexFormat> format = choose_format(request.accept, requested_format(target.query));
  Response response;
  if (format) {
    const auto& [text, digest] = page.in(*format);
    response = text_answer(request, std::string(content_type(*format)), text, digest, kPageCaching);
  } else {
    response = refusal(406,
                       "this index is served as application/vnd.pypi.simple.v1+json, "
                       "application/vnd.pypi.simple.v1+html and text/html");
  }
  response.headers.emplace_back("Vary", "Accept");
  return response;
}

// /files/SHA256/NAME.whl and /files/SHA256/NAME.whl.metadata
Response wheel_answer(const Catalogue& catalogue, const Request& request, const std::string& sha256,
                      std::string_view file_name) {
  if (const IndexedWheel* wheel = catalogue.find_wheel(sha256, file_name))
    return counted_as(RouteKind::Wheel, file_answer(request, *wheel, kFileCaching));
  if (!file_name.ends_with(kMetadataSuffix)) return not_found();
  file_name.remove_suffix(kMetadataSuffix.size());
  const IndexedWheel* wheel = catalogue.find_wheel(sha256, file_name);
  if (wheel == nullptr) return not_found();
  return counted_as(RouteKind::Metadata, text_answer(request, "text/plain; charset=utf-8", wheel->metadata,
                                                     wheel->metadata_sha256, kFileCaching));
}

Response simple_answer(const Catalogue& catalogue, const Pages& pages, const Request& request, const Target& target) {
  const std::vector<std::string>& segments = target.segments;
  if (segments.size() == 1) return moved("simple/", target);
  if (segments.size() == 2 && segments[1].empty()) return index_page(request, target, pages.project_list());
  const bool slash = segments.size() == 3 && segments[2].empty();
  const Project* project = segments.size() == 2 || slash ? catalogue.find_project(segments[1]) : nullptr;
  if (project == nullptr) return not_found();
  if (!slash) return moved(project->name + "/", target);
  if (segments[1] != project->name) return moved("../" + project->name + "/", target);
  return index_page(request, target, pages.of(*project));
}

// /wheels/ and /wheels/requirements.txt: the wheels of a closure as one list.
Response wheels_answer(const Pages& pages, const Request& request, const Target& target) {
  if (target.segments.size() == 1) return moved("wheels/", target);
  const std::string& name = target.segments[1];
  if (target.segments.size() > 2 || (!name.empty() && name != "requirements.txt")) return not_found();
  if (name.empty()) {
    const Page& page = pages.wheel_list();
    return text_answer(request, "text/html; charset=utf-8", page.text, page.digest, kPageCaching);
  }
  if (!pages.requirements_fault().empty()) return refusal(409, "there is no such list: " + pages.requirements_fault());
  const Page& page = pages.requirements();
  return text_answer(request, "text/plain; charset=utf-8", page.text, page.digest, kPageCaching);
}

// /rpm/NAME/repodata/repomd.xml and /rpm/NAME/PACKAGE.rpm: what a path holds changes with the bundle.
Response rpm_answer(const Catalogue& catalogue, const Request& request, const std::vector<std::string>& segments) {
  const auto repository = segments.size() < 3 ? catalogue.rpms.end() : catalogue.rpms.find(segments[1]);
  if (repository == catalogue.rpms.end())
    return refusal(404, "no bundle of this name has rpm packages here; the repositories are at rpm/NAME/");
  std::string path = segments[2];
  for (std::size_t i = 3; i < segments.size(); ++i) path += "/" + segments[i];
  const auto file = repository->second.files.find(path);
  if (file == repository->second.files.end()) return refusal(404, "the rpm packages of this bundle have no such file");
  return file_answer(request, file->second, kPageCaching);
}

Response front_answer(const Pages& pages, const Request& request, const Target& target) {
  const auto value = [&](std::string_view key) {
    const std::vector<std::string> values = form_values(target.query, key);
    return values.empty() ? std::string() : values[0];
  };
  const FrontPage& page = pages.front(choose_language(value("lang"), request.accept_language));
  const PageAddress address = page_address(request.host, request.forwarded_proto, request.registry);
  const std::string words = value("q"), all = page.digest().hex() + "\n" + address.url + "\n" + words;
  Response response = text_answer(request, "text/html; charset=utf-8", page.text(address, words),
                                  bundle::sha256(bundle::as_bytes(all)), kPageCaching);
  response.headers.emplace_back("Content-Security-Policy", front_page_policy());
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Vary", "Accept-Language, X-Forwarded-Proto");
  return response;
}

std::optional<HubTarget> hub_target(const Catalogue& catalogue, const std::optional<Target>& target) {
  return target ? parse_hub_target(target->segments, catalogue.repositories) : std::nullopt;
}

// Only paths are asked for by POST. A repository that is not here has no routes of its own, and says so.
bool answers(const HubTarget& hub, const std::string& method) {
  if (method == "GET" || method == "HEAD") return true;
  return method == "POST" && (hub.route == HubRoute::PathsInfo || hub.repository == nullptr);
}

}  // namespace

std::uint64_t wanted_body(const Catalogue& catalogue, const Request& request) {
  constexpr std::uint64_t kMaxBody = std::uint64_t{256} << 10;  // some thousand paths
  if (request.method != "POST") return 0;
  const std::optional<HubTarget> hub = hub_target(catalogue, parse_target(request.target));
  return hub && hub->route == HubRoute::PathsInfo ? kMaxBody : 0;
}

Response respond(const Catalogue& catalogue, const Request& request) {
  return respond(catalogue, Pages(catalogue), request);
}

Response respond(const Catalogue& catalogue, const Pages& pages, const Request& request) {
  const std::optional<Target> target = parse_target(request.target);
  if (target && target->segments[0] == "v2") return registry_answer(catalogue, request, *target);
  const std::optional<HubTarget> hub = hub_target(catalogue, target);
  if (hub && answers(*hub, request.method)) {
    const bool file = hub->route == HubRoute::Resolve;
    return counted_as(file ? RouteKind::HubFile : RouteKind::Hub, hub_answer(request, *hub, target->query));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    Response response = refusal(405, "this repository is read only: GET and HEAD");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (!target) return refusal(400, "the address is malformed: expected /path with %XX escapes of printable characters");
  const std::vector<std::string>& segments = target->segments;
  if (const std::optional<ModelScopeTarget> scope = parse_modelscope_target(segments, catalogue.repositories))
    return counted_as(RouteKind::ModelScope, modelscope_answer(request, *scope, target->query));
  if (segments[0] == "simple") return counted_as(RouteKind::Index, simple_answer(catalogue, pages, request, *target));
  if (segments[0] == "wheels") return counted_as(RouteKind::Index, wheels_answer(pages, request, *target));
  if (segments[0] == "entries") return entry_answer(catalogue, request, *target);
  if (segments[0] == "apt") return apt_answer(catalogue, request, *target);
  if (segments[0] == "rpm") return counted_as(RouteKind::Rpm, rpm_answer(catalogue, request, segments));
  if (segments[0] == "files" && segments.size() == 3) return wheel_answer(catalogue, request, segments[1], segments[2]);
  if (segments.size() != 1 || !segments[0].empty()) return not_found();
  return counted_as(RouteKind::Front, front_answer(pages, request, *target));
}

}  // namespace sealift::offline_repo
