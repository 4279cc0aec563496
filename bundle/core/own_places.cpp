// SPDX-License-Identifier: Apache-2.0
// A path against the list; see own_places.hpp. Asked for every file of every wheel, so no path is taken apart twice.
#include "sealift/bundle/core/own_places.hpp"

#include <algorithm>
#include <iterator>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

namespace {

bool covers(std::string_view place, std::string_view path) {
  if (place.ends_with('*')) return path.starts_with(place.substr(0, place.size() - 1));
  return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
}

}  // namespace

std::string place_spelling(std::string_view path) {
  std::string spelled;
  for (const char c : loosely_folded(path)) {
    if (c == '/')
      while (spelled.ends_with('.') || spelled.ends_with(' ')) spelled.pop_back();
    spelled += c;
  }
  while (spelled.ends_with('.') || spelled.ends_with(' ')) spelled.pop_back();
  return spelled;
}

const OwnPlace* own_place_of(std::string_view path) {
  const std::string spelled = place_spelling(path);
  const auto* const found = std::find_if(std::begin(kOwnPlaces), std::end(kOwnPlaces),
                                         [&](const OwnPlace& place) { return covers(place.path, spelled); });
  return found == std::end(kOwnPlaces) ? nullptr : found;
}

std::optional<std::string> fault_of_own_entry(std::string_view path, std::string_view entry) {
  const OwnPlace* const place = own_place_of(path);
  if (place == nullptr || covers(place->entry, entry)) return std::nullopt;
  return SafePath::printable(place->path) + " is Sealift's own: " + std::string(place->use) +
         (place->entry.empty() ? std::string() : ", which only " + std::string(place->entry) + " brings");
}

}  // namespace sealift::bundle
