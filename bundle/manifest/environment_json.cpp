// SPDX-License-Identifier: Apache-2.0
// Lists that may be left out are never empty, so that there is one spelling; see environment_json.hpp.
#include "bundle/manifest/environment_json.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bundle/core/fields_json.hpp"
#include "bundle/core/json.hpp"

namespace sealift::bundle::detail {

namespace {

CarriedRuntime parse_runtime(JsonObject object) {
  CarriedRuntime runtime{.glibc = glibc_version(object, "glibc"), .kernel = dotted_version(object, "kernel")};
  object.done();
  return runtime;
}

std::vector<SafePath> parse_paths(JsonObject& placement, const char* key) {
  const std::string where = placement.where() + "." + key;
  std::vector<SafePath> paths;
  for (const Json& json : placement.array(key, kMaxEntries)) {
    if (!json.is_string()) refuse_json(where, "a path was expected", json.type_name());
    paths.push_back(SafePath::parse_published(json.get<std::string>(), where));
    if (paths.size() > 1 && !(paths[paths.size() - 2] < paths.back()))
      refuse_json(where, "paths must be sorted and unique", paths.back().text());
  }
  if (paths.empty()) refuse_json(where, "a path was expected; leave the key out where there is none");
  return paths;
}

std::vector<Digest> parse_startup_files(JsonObject& environment) {
  const std::string where = environment.where() + ".startup";
  std::vector<Digest> digests;
  for (const Json& json : environment.array("startup", 1000)) {
    const std::optional<Digest> digest =
        json.is_string() ? Digest::from_hex(json.get_ref<const std::string&>()) : std::nullopt;
    if (!digest) refuse_json(where, "a SHA-256 was expected", json.dump().substr(0, 80));
    if (!digests.empty() && !(digests.back() < *digest))
      refuse_json(where, "digests must be sorted and unique", digest->hex());
    digests.push_back(*digest);
  }
  if (digests.empty()) refuse_json(where, "a SHA-256 was expected; leave the key out where there is none");
  return digests;
}

}  // namespace

Environment parse_environment(JsonObject object) {
  Environment environment;
  environment.interpreter = SafePath::parse(object.string("interpreter"), object.where() + ".interpreter");
  environment.site_packages = SafePath::parse(object.string("site_packages"), object.where() + ".site_packages");
  for (const Json& json : object.array("placements", kMaxEntries)) {
    JsonObject item(json, object.where() + ".placements");
    Environment::Placement placement{.entry = SafePath::parse(item.string("entry"), item.where() + ".entry"),
                                     .into = item.string("into")};
    if (item.has("left_out")) placement.left_out = parse_paths(item, "left_out");
    if (item.has("shared")) placement.shared = parse_paths(item, "shared");
    item.done();
    if (!placement.into.empty()) SafePath::parse(placement.into, item.where() + ".into");
    environment.placements.push_back(std::move(placement));
  }
  for (const Json& json : object.array("imports", 1000)) {
    const bool plain = json.is_string() && is_plain_name(json.get_ref<const std::string&>());
    if (!plain) refuse_json(object.where() + ".imports", "a module name was expected", json.dump().substr(0, 80));
    environment.imports.push_back(json.get<std::string>());
  }
  if (object.has("runtime")) environment.runtime = parse_runtime(object.object("runtime"));
  if (object.has("startup")) environment.startup_files = parse_startup_files(object);
  object.done();
  return environment;
}

Json environment_json(const Environment& environment) {
  Json placements = Json::array();
  for (const Environment::Placement& placement : environment.placements) {
    placements.push_back({{"entry", placement.entry.text()}, {"into", placement.into}});
    for (const SafePath& path : placement.left_out) placements.back()["left_out"].push_back(path.text());
    for (const SafePath& path : placement.shared) placements.back()["shared"].push_back(path.text());
  }
  Json json = {{"interpreter", environment.interpreter.text()},
               {"site_packages", environment.site_packages.text()},
               {"placements", std::move(placements)},
               {"imports", environment.imports}};
  for (const Digest& file : environment.startup_files) json["startup"].push_back(file.hex());
  if (const std::optional<CarriedRuntime>& runtime = environment.runtime)
    json["runtime"] = {{"glibc", runtime->glibc.text()}, {"kernel", runtime->kernel}};
  return json;
}

}  // namespace sealift::bundle::detail
