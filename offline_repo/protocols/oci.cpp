// SPDX-License-Identifier: Apache-2.0
// A name may have several parts, so a path is read from its end.
#include "offline_repo/protocols/oci.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "bundle/core/json.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Json;

constexpr std::pair<std::string_view, OciRoute> kOciWords[] = {
    {"manifests", OciRoute::Manifest}, {"blobs", OciRoute::Blob}, {"referrers", OciRoute::Referrers}};

std::string name_of_parts(const std::vector<std::string>& segments, std::size_t end) {
  std::string name;
  for (std::size_t i = 1; i < end; ++i) name += (i > 1 ? "/" : "") + segments[i];
  return name;
}

// What a client sent may be no UTF-8.
std::string oci_written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

OciTarget parse_oci_target(const std::vector<std::string>& segments) {
  const std::size_t count = segments.size();
  if (count == 1 || (count == 2 && segments[1].empty())) return {.route = OciRoute::Base};
  if (count == 2 && segments[1] == "_catalog") return {.route = OciRoute::Catalog};
  if (count < 4) return {};
  const std::string &word = segments[count - 2], &last = segments[count - 1];
  if (word == "tags" && last == "list") return {.route = OciRoute::Tags, .name = name_of_parts(segments, count - 2)};
  for (const auto& [known, route] : kOciWords)
    if (word == known) return {.route = route, .name = name_of_parts(segments, count - 2), .reference = last};
  return {};
}

std::optional<std::string> digest_of_reference(std::string_view reference) {
  constexpr std::string_view kAlgorithm = "sha256:";
  if (!reference.starts_with(kAlgorithm)) return std::nullopt;
  reference.remove_prefix(kAlgorithm.size());
  const bool hex = reference.size() == 64 && std::all_of(reference.begin(), reference.end(), [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                   });
  return hex ? std::optional<std::string>(reference) : std::nullopt;
}

OciPage page_of_list(const std::vector<std::string>& sorted, const std::string& n, const std::string& last) {
  std::size_t most = std::numeric_limits<std::size_t>::max();
  if (const char* end = n.data() + n.size(); !n.empty())
    if (const auto [rest, error] = std::from_chars(n.data(), end, most); rest != end || error != std::errc())
      most = std::numeric_limits<std::size_t>::max();
  OciPage page;
  auto next = last.empty() ? sorted.begin() : std::upper_bound(sorted.begin(), sorted.end(), last);
  for (; next != sorted.end() && page.items.size() < most; ++next) page.items.push_back(*next);
  page.more = next != sorted.end();
  return page;
}

std::string oci_catalog_json(const std::vector<std::string>& names) {
  return oci_written({{"repositories", names}});
}

std::string oci_tags_json(const std::string& name, const std::vector<std::string>& tags) {
  return oci_written({{"name", name}, {"tags", tags}});
}

std::string oci_no_referrers_json() {
  return oci_written(
      {{"schemaVersion", 2}, {"mediaType", "application/vnd.oci.image.index.v1+json"}, {"manifests", Json::array()}});
}

std::string oci_error_json(std::string_view code, std::string_view why) {
  return oci_written({{"errors", Json::array({{{"code", code}, {"message", why}, {"detail", Json::object()}}})}});
}

}  // namespace sealift::offline_repo
