// SPDX-License-Identifier: Apache-2.0
// One component per entry, named by its path, which is unique in a bundle; purls are not. The tool is listed without
// its version: the documents of one bundle must not differ between two releases of this program.
#include "packager/documents/sbom.hpp"

#include <map>
#include <set>

#include "bundle/core/json.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Json;

namespace {

std::string ref_of(const bundle::Entry& entry) {
  return "entry:" + entry.path.text();
}

Json sha256_of(const bundle::Digest& digest) {
  return Json::array({{{"alg", "SHA-256"}, {"content", digest.hex()}}});
}

Json licences_of(const WheelFacts& facts) {
  if (!facts.expression.empty()) return Json::array({{{"expression", facts.expression}}});
  Json licences = Json::array();
  for (const std::string& name : facts.licences) licences.push_back({{"license", {{"name", name}}}});
  return licences;
}

// CycloneDX's word for it.
std::string type_of(const bundle::Entry& entry) {
  const std::string_view sort = sort_of(entry);
  if (sort == "wheel" || sort == "deb") return "library";
  if (sort == "interpreter") return "platform";
  if (sort == "model") return "machine-learning-model";
  return sort == "data" ? "data" : "file";
}

Json component_of(const bundle::Entry& entry, const BundleFacts& facts) {
  const std::string path = entry.path.text();
  Json component = {{"bom-ref", ref_of(entry)},
                    {"type", type_of(entry)},
                    {"name", shown(path)},
                    {"hashes", sha256_of(entry.sha256)},
                    {"properties", Json::array({{{"name", "sealift:path"}, {"value", path}},
                                                {{"name", "sealift:size"}, {"value", std::to_string(entry.size)}}})}};
  if (entry.absent) component["properties"].push_back({{"name", "sealift:carried"}, {"value", "false"}});
  if (const auto wheel = facts.wheels.find(path); wheel != facts.wheels.end()) {
    const WheelFacts& says = wheel->second.facts;
    component["name"] = says.project;
    component["version"] = says.version;
    component["purl"] = purl_of("pypi", bundle::normalized_project_name(says.project), says.version);
    if (Json licences = licences_of(says); !licences.empty()) component["licenses"] = std::move(licences);
  } else if (const auto deb = facts.debs.find(path); deb != facts.debs.end()) {
    component["name"] = deb->second.name;
    component["version"] = deb->second.version;
    component["purl"] = deb->second.purl();
  } else if (sort_of(entry) == "interpreter" && path.ends_with(".tar")) {
    const std::string version = path.substr(kInterpreterPrefix.size(), path.size() - kInterpreterPrefix.size() - 4);
    component["name"] = "cpython";
    component["version"] = shown(version);
    component["purl"] = purl_of("generic", "cpython", version);
    if (const auto& runtime = facts.manifest().environment.runtime) {  // lib/runtime of this tree
      const std::string glibc = runtime->glibc.text();
      component["components"] = Json::array({{{"type", "library"},
                                              {"name", "glibc"},
                                              {"version", glibc},
                                              {"purl", purl_of("generic", "glibc", glibc)},
                                              {"licenses", Json::array({{{"expression", kGlibcLicence}}})}}});
    }
  }
  return component;
}

// The bundle depends on every entry, and each wheel on the bundle's wheels that its METADATA requires.
Json dependencies_of(const BundleFacts& facts, const std::string& self) {
  std::map<std::string, std::vector<std::string>> by_project;
  Requirements requirements;
  for (const auto& [path, wheel] : facts.wheels) {
    const std::string project = bundle::normalized_project_name(wheel.facts.project);
    by_project[project].push_back("entry:" + path);
    std::vector<WheelRequirement>& list = requirements[project];
    list.insert(list.end(), wheel.facts.requires_dist.begin(), wheel.facts.requires_dist.end());
  }
  const std::map<std::string, std::set<std::string>> needed_by = needed_projects(requirements);
  Json all = Json::array(), dependencies = Json::array();
  for (const bundle::Entry& entry : facts.manifest().entries) {
    all.push_back(ref_of(entry));
    std::set<std::string> needed;
    if (const auto wheel = facts.wheels.find(entry.path.text()); wheel != facts.wheels.end())
      if (const auto found = needed_by.find(bundle::normalized_project_name(wheel->second.facts.project));
          found != needed_by.end())
        for (const std::string& project : found->second)
          needed.insert(by_project.at(project).begin(), by_project.at(project).end());
    Json dependency = {{"ref", ref_of(entry)}};
    if (!needed.empty()) dependency["dependsOn"] = needed;
    dependencies.push_back(std::move(dependency));
  }
  dependencies.push_back({{"ref", self}, {"dependsOn", std::move(all)}});
  return dependencies;
}

}  // namespace

std::string sbom_json(const BundleFacts& facts) {
  const bundle::Manifest& manifest = facts.manifest();
  const std::string self = "bundle:" + manifest.stem();
  Json components = Json::array();
  for (const bundle::Entry& entry : manifest.entries) components.push_back(component_of(entry, facts));
  const Json tool = {{"type", "application"}, {"name", "sealift-pack"}};
  return bundle::write_json({{"bomFormat", "CycloneDX"},
                             {"specVersion", "1.6"},
                             {"serialNumber", serial_number(facts.source.identity())},
                             {"version", 1},
                             {"metadata",
                              {{"timestamp", manifest.created},
                               {"tools", {{"components", Json::array({tool})}}},
                               {"component",
                                {{"bom-ref", self},
                                 {"type", "application"},
                                 {"name", manifest.name},
                                 {"version", std::to_string(manifest.version)},
                                 {"description", "a bundle of Sealift; the hash is of its signed manifest"},
                                 {"hashes", sha256_of(facts.source.identity())}}}}},
                             {"components", std::move(components)},
                             {"dependencies", dependencies_of(facts, self)}});
}

}  // namespace sealift::packager
