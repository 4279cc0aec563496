// SPDX-License-Identifier: Apache-2.0
// Names and versions were written by strangers, so all of them are escaped.
#include "offline_repo/protocols/index_pages.hpp"

#include <algorithm>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/html.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::html_escaped;
using bundle::Json;

constexpr std::string_view kApiVersion = "1.4";  // 1.1 (PEP 700): versions, size, upload-time; 1.4 (PEP 792): status

// `root` leads from the page to the view's address: from /simple/PROJECT/ it is "../../".
std::string wheel_url(const IndexedWheel& wheel, const char* root) {
  return root + ("files/" + wheel.sha256.hex()) + "/" + url_escaped(wheel.file_name);
}

std::string wheel_links(const Project& project, const char* root) {
  std::string links;
  for (const auto& [file_name, wheel] : project.wheels) {
    links += "<a href=\"" + html_escaped(wheel_url(wheel, root)) + "#sha256=" + wheel.sha256.hex() + "\"";
    if (wheel.requires_python) links += " data-requires-python=\"" + html_escaped(*wheel.requires_python) + "\"";
    links +=
        " data-core-metadata=\"sha256=" + wheel.metadata_sha256.hex() + "\">" + html_escaped(file_name) + "</a><br>\n";
  }
  return links;
}

// PEP 440's characters: in a line of requirements each other one could begin an option or a marker.
bool is_plain_version(std::string_view version) {
  return !version.empty() && std::all_of(version.begin(), version.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '+' ||
           c == '!' || c == '-' || c == '_';
  });
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

std::string path_escaped(std::string_view path) {
  std::string text;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    text += (begin > 0 ? "/" : "") + url_escaped(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
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
  const std::string title = "Links for " + project.name;
  return page(title, "<h1>" + html_escaped(title) + "</h1>\n" + wheel_links(project, "../../"));
}

std::string wheel_list_html(const Catalogue& catalogue) {
  std::string body = "<h1>All wheels</h1>\n";
  for (const auto& [name, project] : catalogue.projects) body += wheel_links(project, "../");
  return page("All wheels", body);
}

Requirements requirements_of(const Catalogue& catalogue) {
  Requirements all;
  for (const auto& [name, project] : catalogue.projects) {
    const std::set<std::string> versions = project.versions();
    if (versions.size() != 1)
      return {.text = {},
              .why_not = name + " has several versions here; ask at the address of one bundle, /b/NAME-VERSION/"};
    if (!is_plain_version(*versions.begin())) return {.text = {}, .why_not = name + " has an invalid version"};
    all.text += name + "==" + *versions.begin();
    for (const auto& [file_name, wheel] : project.wheels) all.text += " --hash=sha256:" + wheel.sha256.hex();
    all.text += "\n";
  }
  return all;
}

// Only "core-metadata", not its older name, which pip 22.3 to 23.1 misreads in JSON (PEP 714).
std::string project_json(const Project& project) {
  Json files = Json::array();
  for (const auto& [file_name, wheel] : project.wheels) {
    Json file = {{"filename", file_name},
                 {"url", wheel_url(wheel, "../../")},
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
