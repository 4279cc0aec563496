// SPDX-License-Identifier: Apache-2.0
// Fields that no wheel can fill (downloads, owners, vulnerabilities) have the values that the index gives when it knows
// none.
#include "offline_repo/protocols/project_json.hpp"

#include <algorithm>
#include <tuple>

#include "bundle/core/json.hpp"
#include "offline_repo/protocols/index_pages.hpp"
#include "offline_repo/protocols/metadata_headers.hpp"
#include "offline_repo/protocols/version_order.hpp"
#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Json;

// As the index does it: a release before all that comes before one, and a malformed version last of all.
std::tuple<bool, bool, std::optional<VersionOrder>, std::string> key_of(const std::string& version) {
  std::optional<VersionOrder> order = version_order(version);
  const bool release = order && !order->is_pre_release();
  return {order.has_value(), release, std::move(order), version};
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json file_of(const IndexedWheel& wheel, const std::string& url) {
  const std::optional<bundle::WheelName> name = bundle::parse_wheel_name(wheel.file_name);
  return {{"filename", wheel.file_name},
          {"url", url + "/files/" + wheel.sha256.hex() + "/" + url_escaped(wheel.file_name)},
          {"digests", {{"sha256", wheel.sha256.hex()}}},
          {"size", wheel.size},
          {"packagetype", "bdist_wheel"},
          {"python_version", name ? name->python_tag : ""},
          {"requires_python", wheel.requires_python ? Json(*wheel.requires_python) : Json()},
          {"upload_time_iso_8601", or_null(wheel.uploaded)},
          {"yanked", false},
          {"yanked_reason", nullptr}};
}

Json info_of(const Project& project, const IndexedWheel& wheel) {
  const std::string& text = wheel.metadata;
  const auto header = [&](const char* name) { return or_null(metadata_header(text, name)); };
  return {{"name", project.name},
          {"version", wheel.version},
          {"summary", header("Summary")},
          {"license", header("License")},
          {"license_expression", header("License-Expression")},
          {"author", header("Author")},
          {"home_page", header("Home-page")},
          {"requires_python", header("Requires-Python")},
          {"requires_dist", metadata_values(text, "Requires-Dist")},
          {"provides_extra", metadata_values(text, "Provides-Extra")},
          {"classifiers", metadata_values(text, "Classifier")},
          {"project_urls", nullptr},
          {"yanked", false},
          {"yanked_reason", nullptr}};
}

}  // namespace

std::string newest_version(const Project& project) {
  std::string newest;
  for (const auto& [file_name, wheel] : project.wheels)
    if (newest.empty() || key_of(newest) < key_of(wheel.version)) newest = wheel.version;
  return newest;
}

std::uint64_t serial_of(const Project& project) {
  std::uint64_t serial = 1;
  for (const auto& [file_name, wheel] : project.wheels)
    if (const std::optional<bundle::Time> made = bundle::parse_time(wheel.uploaded); made)
      serial = std::max<std::uint64_t>(
          serial, static_cast<std::uint64_t>(std::max<std::int64_t>(1, made->time_since_epoch().count())));
  return serial;
}

std::string project_api_json(const Project& project, const std::string& version, const std::string& url) {
  Json releases = Json::object(), urls = Json::array(), info;
  for (const auto& [file_name, wheel] : project.wheels) {
    Json file = file_of(wheel, url);
    if (wheel.version == version) {
      if (info.is_null()) info = info_of(project, wheel);
      urls.push_back(file);
    }
    releases[wheel.version].push_back(std::move(file));
  }
  const Json all = {{"info", std::move(info)},
                    {"last_serial", serial_of(project)},
                    {"releases", std::move(releases)},
                    {"urls", std::move(urls)},
                    {"vulnerabilities", Json::array()}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sealift::offline_repo
