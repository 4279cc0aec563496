// SPDX-License-Identifier: Apache-2.0
// Names and versions were written by strangers, so all of them are escaped.
#include "offline_repo/protocols/index_pages.hpp"

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/html.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::html_escaped;
using bundle::Json;

constexpr std::string_view kApiVersion = "1.4";  // 1.1 (PEP 700): versions, size, upload-time; 1.4 (PEP 792): status

// Seen from /simple/PROJECT/.
std::string wheel_url(const IndexedWheel& wheel) {
  return "../../files/" + wheel.sha256.hex() + "/" + url_escaped(wheel.file_name);
}

std::string page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"pypi:repository-version\" content=\"" +
         std::string(kApiVersion) + "\">\n<title>" + html_escaped(title) + "</title>\n</head>\n<body>\n" + body +
         "</body>\n</html>\n";
}

// METADATA may hold bytes that are not UTF-8; a page with U+FFFD in it is better than no page.
std::string written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string url_escaped(std::string_view text) {
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                            c == '.' || c == '_' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (unreserved)
      out.push_back(c);
    else
      out.append({'%', hex[byte >> 4], hex[byte & 15]});
  }
  return out;
}

std::string project_list_html(const Catalogue& catalogue) {
  std::string body;
  for (const auto& [name, project] : catalogue.projects)
    body += "<a href=\"" + url_escaped(name) + "/\">" + html_escaped(name) + "</a><br>\n";
  return page("Simple index", body);
}

std::string project_list_json(const Catalogue& catalogue) {
  Json projects = Json::array();
  for (const auto& [name, project] : catalogue.projects) projects.push_back({{"name", name}});
  return written({{"meta", {{"api-version", kApiVersion}}}, {"projects", std::move(projects)}});
}

std::string project_html(const Project& project) {
  std::string body = "<h1>Links for " + html_escaped(project.name) + "</h1>\n";
  for (const auto& [file_name, wheel] : project.wheels) {
    body += "<a href=\"" + html_escaped(wheel_url(wheel)) + "#sha256=" + wheel.sha256.hex() + "\"";
    if (wheel.requires_python) body += " data-requires-python=\"" + html_escaped(*wheel.requires_python) + "\"";
    body +=
        " data-core-metadata=\"sha256=" + wheel.metadata_sha256.hex() + "\">" + html_escaped(file_name) + "</a><br>\n";
  }
  return page("Links for " + project.name, body);
}

// Only "core-metadata", not its older name, which pip 22.3 to 23.1 misreads in JSON (PEP 714).
std::string project_json(const Project& project) {
  Json files = Json::array();
  for (const auto& [file_name, wheel] : project.wheels) {
    Json file = {{"filename", file_name},
                 {"url", wheel_url(wheel)},
                 {"hashes", {{"sha256", wheel.sha256.hex()}}},
                 {"size", wheel.size},
                 {"yanked", false},
                 {"core-metadata", {{"sha256", wheel.metadata_sha256.hex()}}}};
    if (wheel.requires_python) file["requires-python"] = *wheel.requires_python;
    if (!wheel.uploaded.empty()) file["upload-time"] = wheel.uploaded;
    files.push_back(std::move(file));
  }
  return written({{"meta", {{"api-version", kApiVersion}}},
                  {"name", project.name},
                  {"project-status", {{"status", "active"}}},
                  {"versions", project.versions()},
                  {"files", std::move(files)}});
}

}  // namespace sealift::offline_repo
