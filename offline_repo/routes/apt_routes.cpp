// SPDX-License-Identifier: Apache-2.0
// See apt_routes.hpp. Names are looked up as they are, so a package is found or it is not here.
#include "offline_repo/routes/apt_routes.hpp"

#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::string_view kByHash = "by-hash/", kDeb = ".deb";

Response no_package() {
  Response response =
      refusal(404, "no bundle here has this file for apt; a source is: deb [signed-by=KEY] …/apt/NAME ./");
  response.route = RouteKind::Apt;
  return response;
}

}  // namespace

Response apt_answer(const Catalogue& catalogue, const Request& request, const Target& target) {
  const auto repository = target.segments.size() > 2 ? catalogue.apt.find(target.segments[1]) : catalogue.apt.end();
  if (repository == catalogue.apt.end()) return no_package();
  std::string name;
  for (std::size_t i = 2; i < target.segments.size(); ++i)
    if (target.segments[i] != ".") name += (name.empty() ? "" : "/") + target.segments[i];
  const auto file = repository->second.files.find(name);
  if (file == repository->second.files.end()) return no_package();
  Response response = file_answer(request, file->second, name.starts_with(kByHash) ? kFileCaching : kPageCaching);
  response.route = RouteKind::Apt;
  return response;
}

bool is_apt_package(std::string_view target) {
  return target.starts_with("/apt/") && (target.find("/by-hash/") != target.npos || target.ends_with(kDeb));
}

}  // namespace sealift::offline_repo
