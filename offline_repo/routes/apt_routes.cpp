// SPDX-License-Identifier: Apache-2.0
// See apt_routes.hpp. Names are looked up as they are, so a package is found or it is not here.
#include "offline_repo/routes/apt_routes.hpp"

#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::string_view kByHash = "by-hash/", kDeb = ".deb";

Response no_package() {
  return refusal(404, "no bundle here has this file for apt; a source is: deb [signed-by=KEY] …/apt/NAME ./");
}

}  // namespace

Response apt_file(const Asked& asked) {
  const std::vector<std::string>& segments = asked.target.segments;
  const auto repository = segments.size() > 2 ? asked.catalogue.apt.find(segments[1]) : asked.catalogue.apt.end();
  if (repository == asked.catalogue.apt.end()) return no_package();
  std::string name;
  for (std::size_t i = 2; i < segments.size(); ++i)
    if (segments[i] != ".") name += (name.empty() ? "" : "/") + segments[i];
  const auto file = repository->second.files.find(name);
  if (file == repository->second.files.end()) return no_package();
  return file_answer(asked.request, file->second, name.starts_with(kByHash) ? kFileCaching : kPageCaching);
}

bool is_apt_package(std::string_view target) {
  return target.starts_with("/apt/") && (target.find("/by-hash/") != target.npos || target.ends_with(kDeb));
}

}  // namespace sealift::offline_repo
