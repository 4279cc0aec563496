// SPDX-License-Identifier: Apache-2.0
// See oci.hpp.
#include "offline_repo/protocols/oci.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "bundle/core/json.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Json;

// What a client sent may be no UTF-8.
std::string oci_written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

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
