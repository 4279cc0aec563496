// SPDX-License-Identifier: Apache-2.0
// The segments of a path are compared with names of the catalogue. There is no folder behind them, so nothing can be
// reached that a signed bundle does not list as a wheel.
#include "offline_repo/server/routes.hpp"

#include <optional>

#include "offline_repo/server/request_target.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::offline_repo {

namespace {

constexpr char kPageCaching[] = "max-age=600";
constexpr char kFileCaching[] = "max-age=365000000, immutable";  // the digest is part of the address
constexpr std::string_view kMetadataSuffix = ".metadata";

std::string quoted(const bundle::Digest& digest) {
  return "\"" + digest.hex() + "\"";
}

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

Response not_modified(const Response& full) {
  Response response{.status = 304};
  for (const auto& header : full.headers)
    if (header.first == "ETag" || header.first == "Cache-Control" || header.first == "Vary")
      response.headers.push_back(header);
  return response;
}

Response text_answer(const Request& request, std::string type, std::string text, const bundle::Digest& digest,
                     std::string caching) {
  Response response{.status = 200,
                    .headers = {{"Content-Type", std::move(type)},
                                {"Cache-Control", std::move(caching)},
                                {"ETag", quoted(digest)},
                                {"X-Content-Type-Options", "nosniff"}},
                    .body = std::move(text)};
  return lists_etag(request.if_none_match, quoted(digest)) ? not_modified(response) : response;
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

Response wheel_answer(const Request& request, const IndexedWheel& wheel) {
  const std::string etag = quoted(wheel.sha256);
  Response response{.status = 200,
                    .headers = {{"Content-Type", "application/octet-stream"},
                                {"Cache-Control", kFileCaching},
                                {"ETag", etag},
                                {"Accept-Ranges", "bytes"},
                                {"X-Content-Type-Options", "nosniff"}},
                    .body = WheelPart{.wheel = &wheel, .range = {.first = 0, .count = wheel.size}}};
  if (lists_etag(request.if_none_match, etag)) return not_modified(response);
  // A range is defined for GET only, and If-Range holds only for the bytes that it names.
  if (request.method != "GET" || (!request.if_range.empty() && request.if_range != etag)) return response;
  const RangeAnswer answer = answer_range(request.range, wheel.size);
  if (answer.kind == RangeKind::Unsatisfiable) {
    response = refusal(416, "the range lies outside of the file's " + std::to_string(wheel.size) + " bytes");
    response.headers.emplace_back("Content-Range", "bytes */" + std::to_string(wheel.size));
  } else if (answer.kind == RangeKind::Part) {
    response.status = 206;
    response.headers.emplace_back("Content-Range", "bytes " + std::to_string(answer.range.first) + "-" +
                                                       std::to_string(answer.range.first + answer.range.count - 1) +
                                                       "/" + std::to_string(wheel.size));
    response.body = WheelPart{.wheel = &wheel, .range = answer.range};
  }
  return response;
}

// /files/SHA256/NAME.whl and /files/SHA256/NAME.whl.metadata
Response file_answer(const Catalogue& catalogue, const Request& request, const std::string& sha256,
                     std::string_view file_name) {
  if (const IndexedWheel* wheel = catalogue.find_wheel(sha256, file_name)) return wheel_answer(request, *wheel);
  if (!file_name.ends_with(kMetadataSuffix)) return not_found();
  file_name.remove_suffix(kMetadataSuffix.size());
  const IndexedWheel* wheel = catalogue.find_wheel(sha256, file_name);
  if (wheel == nullptr) return not_found();
  return text_answer(request, "text/plain; charset=utf-8", wheel->metadata, wheel->metadata_sha256, kFileCaching);
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

}  // namespace

Response respond(const Catalogue& catalogue, const Request& request) {
  return respond(catalogue, Pages(catalogue), request);
}

Response respond(const Catalogue& catalogue, const Pages& pages, const Request& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    Response response = refusal(405, "this repository is read only: GET and HEAD");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  const std::optional<Target> target = parse_target(request.target);
  if (!target) return refusal(400, "the address is malformed: expected /path with %XX escapes of printable characters");
  const std::vector<std::string>& segments = target->segments;
  if (segments[0] == "simple") return simple_answer(catalogue, pages, request, *target);
  if (segments[0] == "files" && segments.size() == 3) return file_answer(catalogue, request, segments[1], segments[2]);
  if (segments.size() != 1 || !segments[0].empty()) return not_found();
  return text_answer(request, "text/html; charset=utf-8", pages.welcome().text, pages.welcome().digest, kPageCaching);
}

}  // namespace sealift::offline_repo
