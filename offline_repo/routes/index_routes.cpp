// SPDX-License-Identifier: Apache-2.0
// See index_routes.hpp. Redirects are relative, so that they hold below any prefix.
#include "offline_repo/routes/index_routes.hpp"

#include "offline_repo/protocols/page_reader.hpp"
#include "offline_repo/protocols/project_json.hpp"
#include "offline_repo/routes/answers.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::offline_repo {

namespace {

constexpr char kHtml[] = "text/html; charset=utf-8", kPlain[] = "text/plain; charset=utf-8";

// `location` is relative and made of the catalogue's names. Of what the client sent only the query is repeated.
Response moved(const Asked& asked, std::string location) {
  if (!asked.target.query.empty()) location += "?" + asked.target.query;
  Response response = refusal(301, "the page is at " + location);
  response.headers.emplace_back("Location", std::move(location));
  return response;
}

Response index_page(const Asked& asked, const IndexPage& page) {
  const std::optional<IndexFormat> format = choose_format(asked.request.accept, requested_format(asked.target.query));
  Response response;
  if (format) {
    const auto& [text, digest] = page.in(*format);
    response = kept_answer(asked.request, std::string(content_type(*format)), text, digest, kPageCaching);
  } else {
    response = refusal(406,
                       "this index is served as application/vnd.pypi.simple.v1+json, "
                       "application/vnd.pypi.simple.v1+html and text/html");
  }
  response.headers.emplace_back("Vary", "Accept");
  return response;
}

Response made_page(const Asked& asked, const char* type, const Page& page) {
  return kept_answer(asked.request, type, page.text, page.digest, kPageCaching);
}

}  // namespace

Response slash_behind_simple(const Asked& asked) {
  return moved(asked, "simple/");
}

Response slash_behind_wheels(const Asked& asked) {
  return moved(asked, "wheels/");
}

Response project_list(const Asked& asked) {
  return index_page(asked, asked.pages.project_list());
}

Response project_page(const Asked& asked) {
  const std::string name = asked.name("NAME");
  const Project* project = asked.catalogue.find_project(name);
  if (project == nullptr) return nothing_there(asked);
  const bool slash = asked.target.segments.back().empty();
  if (!slash) return moved(asked, project->name + "/");
  if (name != project->name) return moved(asked, "../" + project->name + "/");
  return index_page(asked, asked.pages.of(*project));
}

Response wheel_list(const Asked& asked) {
  return made_page(asked, kHtml, asked.pages.wheel_list());
}

Response requirements_list(const Asked& asked) {
  const std::string& fault = asked.pages.requirements_fault();
  return fault.empty() ? made_page(asked, kPlain, asked.pages.requirements())
                       : refusal(409, "there is no such list: " + fault);
}

Response project_api(const Asked& asked) {
  const Project* project = asked.catalogue.find_project(asked.name("NAME"));
  if (project == nullptr || project->wheels.empty()) return nothing_there(asked);
  const std::string version = asked.name("VERSION", newest_version(*project));
  if (!project->versions().contains(version)) return nothing_there(asked);
  Response response =
      document_answer(asked.request, project_api_json(*project, version, reader_address(asked.request).url), kJsonType);
  response.headers.emplace_back("Vary", "X-Forwarded-Proto");
  response.headers.emplace_back("X-PyPI-Last-Serial", std::to_string(serial_of(*project)));
  return response;
}

Response wheel_file(const Asked& asked) {
  return file_answer(asked.request, *asked.wheel, kFileCaching);
}

Response wheel_metadata(const Asked& asked) {
  return kept_answer(asked.request, kPlain, asked.wheel->metadata, asked.wheel->metadata_sha256, kFileCaching);
}

}  // namespace sealift::offline_repo
