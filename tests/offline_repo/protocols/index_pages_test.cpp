// SPDX-License-Identifier: Apache-2.0
// The index pages: exact fields for pip and uv, and strangers' text that stays text.
#include "offline_repo/protocols/index_pages.hpp"

#include <doctest/doctest.h>

#include "bundle/core/json.hpp"
#include "tests/offline_repo/sample_catalogue.hpp"

using namespace sealift::offline_repo;
using namespace sealift::test;
using sealift::bundle::parse_json;

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a project's JSON has exactly the fields of PEP 691, 700, 714 and 792") {
  const Catalogue catalogue = sample_catalogue();
  const IndexedWheel& wheel = catalogue.projects.at("torch").wheels.begin()->second;
  const std::string expected =
      R"({"files":[{"core-metadata":{"sha256":")" + wheel.metadata_sha256.hex() +
      R"("},"filename":"torch-2.0+cu1-py3-none-any.whl","hashes":{"sha256":")" + wheel.sha256.hex() +
      R"("},"requires-python":">=3.9","size":1000,"upload-time":"2026-01-02T03:04:05Z","url":"../../files/)" +
      wheel.sha256.hex() +
      R"(/torch-2.0%2Bcu1-py3-none-any.whl","yanked":false}],"meta":{"api-version":"1.4"},"name":"torch",)"
      R"("project-status":{"status":"active"},"versions":["2.0+cu1"]})";
  CHECK(project_json(catalogue.projects.at("torch")) == expected);
}

TEST_CASE("the list of projects names each once, in HTML with a link relative to itself") {
  const Catalogue catalogue = sample_catalogue();
  CHECK(project_list_json(catalogue) ==
        R"({"meta":{"api-version":"1.4"},"projects":[{"name":"demo-kit"},{"name":"torch"}]})");
  const std::string html = project_list_html(catalogue);
  CHECK(html.starts_with("<!DOCTYPE html>\n"));
  CHECK(holds(html, "<a href=\"demo-kit/\">demo-kit</a>"));
  CHECK(holds(html, "<a href=\"torch/\">torch</a>"));
}

TEST_CASE("a project's HTML links each wheel with digest, required Python and metadata digest") {
  const Catalogue catalogue = sample_catalogue();
  const Project& project = catalogue.projects.at("demo-kit");
  const std::string html = project_html(project);
  for (const auto& [file_name, wheel] : project.wheels)
    CHECK(holds(html, "<a href=\"../../files/" + wheel.sha256.hex() + "/" + file_name + "#sha256=" +
                          wheel.sha256.hex() + "\" data-requires-python=\"&gt;=3.9\" data-core-metadata=\"sha256=" +
                          wheel.metadata_sha256.hex() + "\">" + file_name + "</a>"));
  CHECK(holds(html, "<meta name=\"pypi:repository-version\" content=\"1.4\">"));
}

TEST_CASE("a wheel that requires no Python says nothing about it") {
  Catalogue catalogue = sample_catalogue();
  catalogue.projects.at("torch").wheels.begin()->second.requires_python.reset();
  CHECK_FALSE(holds(project_html(catalogue.projects.at("torch")), "requires-python"));
  CHECK_FALSE(holds(project_json(catalogue.projects.at("torch")), "requires-python"));
}

TEST_CASE("all wheels are one page, and requirements with their digests where each project has one version") {
  Catalogue catalogue = sample_catalogue();
  const std::string html = wheel_list_html(catalogue);
  for (const auto& [name, project] : catalogue.projects)
    for (const auto& [file_name, wheel] : project.wheels)
      CHECK(holds(html, "<a href=\"../files/" + wheel.sha256.hex() + "/" + url_escaped(file_name) +
                            "#sha256=" + wheel.sha256.hex() + "\""));
  CHECK(requirements_of(catalogue).why_not.starts_with("demo-kit has several versions here"));
  CHECK(requirements_of(catalogue).text.empty());
  auto& demo = catalogue.projects.at("demo-kit").wheels;
  demo.erase("Demo_Kit-1.0-py3-none-any.whl");
  IndexedWheel other = sample_wheel("Demo_Kit-1.1-cp311-cp311-linux_x86_64.whl", "1.1");
  demo[other.file_name] = other;
  const Requirements requirements = requirements_of(catalogue);
  CHECK(requirements.why_not.empty());
  const auto hash = [](const std::string& file) {
    return " --hash=sha256:" + sealift::bundle::sha256(sealift::bundle::as_bytes(file)).hex();
  };
  CHECK(requirements.text == "demo-kit==1.1" + hash(other.file_name) + hash("Demo_Kit-1.1-py3-none-any.whl") +
                                 "\ntorch==2.0+cu1" + hash("torch-2.0+cu1-py3-none-any.whl") + "\n");
}

TEST_CASE("a version that says more than a version is in no requirements") {
  for (const std::string version : {"1 --index-url http://evil/", "1; python_version<'3'", "1 # x", "1\n-e .", "1,!=2",
                                    "*", "", "1 --hash=sha256:00"}) {
    Catalogue catalogue = sample_catalogue();
    catalogue.projects.at("demo-kit").wheels.erase("Demo_Kit-1.0-py3-none-any.whl");
    CHECK(requirements_of(catalogue).why_not.empty());
    catalogue.projects.at("torch").wheels.begin()->second.version = version;
    CHECK(requirements_of(catalogue).text.empty());
    CHECK(requirements_of(catalogue).why_not == "torch has an invalid version");
  }
}

TEST_CASE("hostile text in names and METADATA stays text") {
  const std::string hostile = "\"><script>alert('1')</script>&";
  IndexedWheel wheel = sample_wheel("a" + hostile + "-1-py3-none-any.whl", "1" + hostile);
  wheel.requires_python = hostile;
  const Project project{.name = "a" + hostile, .wheels = {{wheel.file_name, wheel}}};
  const Catalogue catalogue{.bundles = {hostile}, .projects = {{project.name, project}}};
  for (const std::string& html : {project_html(project), project_list_html(catalogue), wheel_list_html(catalogue)}) {
    CHECK_FALSE(holds(html, "<script"));
    CHECK_FALSE(holds(html, "'1'"));
  }
  const auto json = parse_json(project_json(project), "page");
  CHECK(json["files"][0]["requires-python"] == hostile);
  CHECK(json["files"][0]["filename"] == wheel.file_name);
  CHECK_FALSE(holds(json["files"][0]["url"].get<std::string>(), "\""));
}

TEST_CASE("METADATA that is not UTF-8 does not keep the page from being written") {
  IndexedWheel wheel = sample_wheel("a-1-py3-none-any.whl", "1\xff\xfe");
  const Project project{.name = "a", .wheels = {{wheel.file_name, wheel}}};
  CHECK(parse_json(project_json(project), "page")["versions"][0] == "1\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("URLs keep only unreserved characters") {
  CHECK(url_escaped("torch-2.0+cu1.whl") == "torch-2.0%2Bcu1.whl");
  CHECK(url_escaped("a/b?c#d%e \xc3\xa4~_") == "a%2Fb%3Fc%23d%25e%20%C3%A4~_");
}
