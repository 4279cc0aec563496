// SPDX-License-Identifier: Apache-2.0
// One component per entry, named by its path, which is unique in a bundle; purls are not. The files of a model or data
// set are components of that one. The tool is listed without its version: the documents of one bundle must not differ
// between two releases of this program.
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

Json licences_of(const std::string& expression, const std::vector<std::string>& names) {
  if (!expression.empty()) return Json::array({{{"expression", expression}}});
  Json licences = Json::array();
  for (const std::string& name : names) licences.push_back({{"license", {{"name", name}}}});
  return licences;
}

// CycloneDX's word for it.
std::string type_of(const bundle::Entry& entry) {
  const std::string_view sort = sort_of(entry);
  if (sort == "wheel" || sort == "deb" || sort == "rpm") return "library";
  return sort == "interpreter" ? "platform" : "file";
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
  if (entry.verity) component["properties"].push_back({{"name", "sealift:verity"}, {"value", entry.verity->hex()}});
  if (const auto wheel = facts.wheels.find(path); wheel != facts.wheels.end()) {
    const WheelFacts& says = wheel->second.facts;
    component["name"] = says.project;
    component["version"] = says.version;
    component["purl"] = purl_of("pypi", bundle::normalized_project_name(says.project), says.version);
    if (Json licences = licences_of(says.expression, says.licences); !licences.empty())
      component["licenses"] = std::move(licences);
  } else if (const auto deb = facts.debs.find(path); deb != facts.debs.end()) {
    component["name"] = deb->second.name;
    component["version"] = deb->second.version;
    component["purl"] = deb->second.purl();
  } else if (const auto rpm = facts.rpms.find(path); rpm != facts.rpms.end()) {
    component["name"] = rpm->second.name;
    component["version"] = rpm->second.version;
    component["purl"] = rpm->second.purl();
    if (!rpm->second.licence.empty()) component["licenses"] = licences_of({}, {rpm->second.licence});
  } else if (path.starts_with(kSdkPrefix) && path.ends_with(".tar")) {
    const std::string version = path.substr(kSdkPrefix.size(), path.size() - kSdkPrefix.size() - 4);
    component["type"] = "library";
    component["name"] = "sealift";
    component["version"] = shown(version);
    component["purl"] = purl_of("generic", "sealift", version);
    component["licenses"] = Json::array({{{"expression", "Apache-2.0"}}});
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

using Owners = std::map<std::string, const BundledModel*>;  // an entry's path -> whose file it is

Owners owners_of(const std::vector<BundledModel>& models) {
  Owners owners;
  for (const BundledModel& model : models) {
    for (const auto& [path, place] : model.files) owners.emplace(place, &model);
    for (const std::string& twin : model.twins) owners.emplace(twin, &model);
  }
  return owners;
}

// Repository, commit and licence; `files` are the components of its files.
Json component_of(const BundledModel& model, Json files) {
  Json component = {{"bom-ref", model.ref()},
                    {"type", model.data ? "data" : "machine-learning-model"},
                    {"name", shown(model.name)},
                    {"components", std::move(files)}};
  if (model.hub) {
    component["version"] = model.commit;
    component["purl"] = model.purl();
  }
  if (Json licences = licences_of(model.stated.expression, model.stated.names); !licences.empty())
    component["licenses"] = std::move(licences);
  return component;
}

Json components_of(const BundleFacts& facts) {
  const Owners owners = owners_of(facts.models);
  Json components = Json::array();
  std::map<const BundledModel*, Json> files;
  for (const bundle::Entry& entry : facts.manifest().entries) {
    const auto owner = owners.find(entry.path.text());
    Json& list = owner == owners.end() ? components : files.emplace(owner->second, Json::array()).first->second;
    list.push_back(component_of(entry, facts));
  }
  for (const BundledModel& model : facts.models)
    if (const auto own = files.find(&model); own != files.end())
      components.push_back(component_of(model, std::move(own->second)));
  return components;
}

// The bundle depends on every component, and each wheel on the bundle's wheels that its METADATA requires.
Json dependencies_of(const BundleFacts& facts, const Json& components, const std::string& self) {
  std::map<std::string, std::vector<std::string>> by_project;
  std::map<std::string, std::string> project_of;  // a wheel's reference -> its project
  Requirements requirements;
  for (const auto& [path, wheel] : facts.wheels) {
    const std::string project = bundle::normalized_project_name(wheel.facts.project);
    by_project[project].push_back("entry:" + path);
    project_of["entry:" + path] = project;
    std::vector<WheelRequirement>& list = requirements[project];
    list.insert(list.end(), wheel.facts.requires_dist.begin(), wheel.facts.requires_dist.end());
  }
  const std::map<std::string, std::set<std::string>> needed_by = needed_projects(requirements);
  Json all = Json::array(), dependencies = Json::array();
  for (const Json& component : components) {
    const std::string ref = component.at("bom-ref");
    all.push_back(ref);
    std::set<std::string> needed;
    if (const auto wheel = project_of.find(ref); wheel != project_of.end())
      if (const auto found = needed_by.find(wheel->second); found != needed_by.end())
        for (const std::string& project : found->second)
          needed.insert(by_project.at(project).begin(), by_project.at(project).end());
    Json dependency = {{"ref", ref}};
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
  Json components = components_of(facts);
  Json dependencies = dependencies_of(facts, components, self);
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
                             {"dependencies", std::move(dependencies)}});
}

}  // namespace sealift::packager
